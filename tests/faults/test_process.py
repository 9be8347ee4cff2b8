"""Processes under stress: too little memory, forks, threads, and an interpreter that ends during a fit."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import METHODS, OnlineTree

BEGIN = """
import os, resource, sys, threading, time
import numpy as np
import scipy.sparse as sp
import labelwood
from labelwood import METHODS, LabelwoodError
random = np.random.default_rng(0)
n, d, labels = 3000, 2000, 400
X = sp.random_array((n, d), density=0.02, random_state=random, dtype=np.float32, format="csr")
Y = sp.random_array((n, labels), density=0.01, random_state=random, dtype=np.float32, format="csr")
Y.data[:] = 1
"""


def run(script: str, *words: object, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", BEGIN + textwrap.dedent(script), *map(str, words)],
        check=False, capture_output=True, text=True, timeout=timeout,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
    )  # fmt: skip


def small_data():
    random = np.random.default_rng(0)
    X = sp.random_array((60, 40), density=0.2, random_state=random, dtype=np.float32, format="csr")
    return X, (np.arange(60)[:, None] % 7 == np.arange(7)).astype(np.float32)


@pytest.mark.parametrize("method", list(METHODS))
def test_too_little_memory_in_training(method):
    """Several limits of the address space: a MemoryError or a LabelwoodError, never an abort."""
    done = run(
        """
        rows = 3000 if sys.argv[1] in ("linear-tree", "one-vs-rest") else 900  # enough to need memory
        size = int(open("/proc/self/statm").read().split()[0]) * 4096
        refused = trained = 0
        for room in (0, 2**19, 2**21, 2**23):
            resource.setrlimit(resource.RLIMIT_AS, (size + room, resource.RLIM_INFINITY))
            try:
                METHODS[sys.argv[1]](n_jobs=2).fit(X[:rows], Y[:rows])
                trained += 1
            except (MemoryError, LabelwoodError):
                refused += 1
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert METHODS[sys.argv[1]](n_jobs=1).fit(X[:rows], Y[:rows]).predict_topk(X[:2], 3)[0].shape == (2, 3)
        print(refused, trained)
        """,
        method,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 0, "no limit was low enough to matter"


def test_too_little_memory_in_loading_and_predicting(tmp_path):
    done = run(
        """
        for name in METHODS:
            METHODS[name](n_jobs=1).fit(X[:200], Y[:200]).save(sys.argv[1] + "/" + name)
        size = int(open("/proc/self/statm").read().split()[0]) * 4096
        refused = 0
        for name in METHODS:
            for room in range(12):
                resource.setrlimit(resource.RLIMIT_AS, (size + room * 2**17, resource.RLIM_INFINITY))
                try:
                    model = labelwood.load(sys.argv[1] + "/" + name)
                    assert np.isfinite(model.predict_topk(X, 5)[1]).all()
                except (MemoryError, LabelwoodError, OSError) as error:
                    refused += 1
                model = None
        print(refused)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 0


@pytest.mark.parametrize("method", list(METHODS))
def test_fork_after_use(method):
    """Fork a process that has trained and predicted with threads: parent and children predict the same."""
    X, Y = small_data()
    model = METHODS[method](n_jobs=2).fit(X, Y)
    expected = model.predict_topk(X, 3)[1]
    context = multiprocessing.get_context("fork")
    with context.Pool(2, initializer=_hold, initargs=(model, X)) as pool:
        for scores in pool.map(_predict_and_fit, range(2)):
            np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(model.predict_topk(X, 3)[1], expected)


def _hold(model, X):
    global held  # noqa: PLW0603 - what a forked process inherits
    held = (model, X)


def _predict_and_fit(number):
    model, X = held
    type(model)(n_jobs=2).fit(X, small_data()[1])
    return model.predict_topk(X, 3)[1]


@pytest.mark.parametrize("method", list(METHODS))
def test_threads_that_predict_at_once(method, tmp_path):
    """Threads share a newly loaded model and build its lazy parts at once; all must predict the same."""
    X, Y = small_data()
    METHODS[method](n_jobs=1).fit(X, Y).save(tmp_path / "model")
    expected = labelwood.load(tmp_path / "model").predict_topk(X, 3)
    for _ in range(5):
        model = labelwood.load(tmp_path / "model")
        barrier = threading.Barrier(8)

        def work(model=model, barrier=barrier):
            barrier.wait()
            return [model.predict_topk(X, 3) for _ in range(5)]

        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(work) for _ in range(8)]:
                for labels, scores in future.result():
                    np.testing.assert_array_equal(labels, expected[0])
                    np.testing.assert_array_equal(scores, expected[1])


def test_threads_that_predict_save_and_learn_at_once(tmp_path):
    X, Y = small_data()
    model = OnlineTree(n_jobs=1).fit(X, Y)
    ended = threading.Event()

    def learn():
        for number in range(60):
            row = number % 60
            model.partial_fit(X[[row]], Y[[row]])
        ended.set()

    def read():
        n = 0
        while not ended.is_set():
            assert np.isfinite(model.predict_topk(X, 3)[1]).all()
            model.save(tmp_path / f"copy{threading.get_ident()}")
            n += 1
        return n

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        pool.submit(learn).result()
        assert sum(reader.result() for reader in readers) > 0
    assert model.n_seen_ == 120


@pytest.mark.parametrize("method", ["linear-tree", "online-tree", "ldsm-forest", "blend"])
@pytest.mark.parametrize("ending", ["return", "sys.exit(3)", "os.kill(os.getpid(), 15)"])
def test_the_interpreter_ends_during_a_fit(method, ending):
    """The main thread ends while another runs a kernel: the exit code is as without that thread."""
    done = run(
        """
        threading.Thread(target=lambda: METHODS[sys.argv[1]](n_jobs=2, verbose=True).fit(X, Y), daemon=True).start()
        time.sleep(0.3)
        if sys.argv[2] != "return":
            exec(sys.argv[2])
        """,
        method,
        ending,
    )
    assert done.returncode == {"return": 0, "sys.exit(3)": 3}.get(ending, -15), done.stderr[-3000:]
    assert "Fatal" not in done.stderr, done.stderr[-3000:]
    assert "terminate called" not in done.stderr, done.stderr[-3000:]


def test_a_row_of_a_million_features_and_a_label_of_a_million_rows():
    million = 1_000_000
    wide = sp.csr_array(
        (np.ones(million, np.float32), (np.zeros(million, int), np.arange(million))), shape=(3, million)
    )
    for method in ("linear-tree", "online-tree", "craft-forest"):
        model = METHODS[method](n_jobs=1).fit(wide, [["a"], ["b"], ["a"]])
        assert np.isfinite(model.predict_topk(wide, 2)[1]).all()
    X = sp.csr_array((np.ones(million, np.float32), np.arange(million) % 2, np.arange(million + 1)), shape=(million, 2))
    Y = sp.csr_array((np.ones(million, np.float32), np.zeros(million, int), np.arange(million + 1)), shape=(million, 1))
    model = METHODS["linear-tree"](n_jobs=1).fit(X, Y)
    assert model.predict_topk(X[:2], 1)[0].tolist() == [[0], [0]]
