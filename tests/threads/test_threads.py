"""Threaded kernels, and prediction while a tree learns; ``make test-tsan`` uses ThreadSanitizer."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import METHODS, HashingEncoder, OnlineTree, TfidfEncoder
from labelwood.data import load


def data(n_rows: int = 300, n_features: int = 120, n_labels: int = 40):
    random = np.random.default_rng(0)
    X = sp.random_array((n_rows, n_features), density=0.1, random_state=random, dtype=np.float32, format="csr")
    Y = (np.arange(n_rows)[:, None] % n_labels == np.arange(n_labels)).astype(np.float32)
    return X, Y


@pytest.mark.parametrize("method", list(METHODS))
def test_training_and_prediction_on_four_threads(method):
    X, Y = data()
    members = {"models": ["linear-tree", "craft-forest"]}
    settings = {"blend": members, "ranker": members, "ldsm-forest": {"n_trees": 4}}.get(method, {})
    four = METHODS[method](n_jobs=4, **settings).fit(X, Y)
    one = METHODS[method](n_jobs=1, **settings).fit(X, Y)
    np.testing.assert_array_equal(four.predict_topk(X, 3)[1], one.predict_topk(X, 3)[1])


def test_texts_and_files_on_four_threads(tmp_path):
    texts = [f"some words {number % 17} and more {number}" for number in range(5000)]
    for encoder in (TfidfEncoder(n_jobs=4), HashingEncoder(n_features=1000, n_jobs=4)):
        assert encoder.fit_transform(texts).shape[0] == len(texts)
    lines = "".join(f"{number % 9} {number % 50}:1 {50 + number % 7}:0.5\n" for number in range(100_000))
    (tmp_path / "rows.txt").write_text(lines)
    assert load(tmp_path / "rows.txt", n_threads=4).n_rows == 100_000


def test_predicting_while_learning():
    X, Y = data()
    model = OnlineTree(n_jobs=2).fit(X[:50], Y[:50])
    ended, failed = threading.Event(), []

    def predict():
        try:
            while not ended.is_set():
                assert np.isfinite(model.predict_topk(X[:40], 3)[1]).all()
                model.to_saved()
        except BaseException as error:
            failed.append(error)

    readers = [threading.Thread(target=predict) for _ in range(3)]
    for reader in readers:
        reader.start()
    for start in range(50, 300, 5):
        model.partial_fit(X[start : start + 5], Y[start : start + 5])
    ended.set()
    for reader in readers:
        reader.join()
    assert not failed
    assert model.n_seen_ == 300


def test_models_used_by_several_threads(tmp_path):
    """Several threads build the lazy parts of a model at once."""
    X, Y = data()
    for method in ("linear-tree", "craft-forest", "online-tree"):
        METHODS[method](n_jobs=1).fit(X, Y).save(tmp_path / method)
        model = labelwood.load(tmp_path / method)
        expected = labelwood.load(tmp_path / method).predict_topk(X, 3)[1]
        with ThreadPoolExecutor(4) as pool:
            for scores in pool.map(lambda _, m=model: m.predict_topk(X, 3)[1], range(4)):
                np.testing.assert_array_equal(scores, expected)


LABELS_CHANGE_DURING_A_SEARCH = """
import threading, numpy as np, scipy.sparse as sp
from labelwood import OnlineTree
random = np.random.default_rng(0)
X = sp.random_array((3000, 500), density=0.1, random_state=random, dtype=np.float32, format="csr")
model = OnlineTree(n_jobs=1, max_leaf=4).fit(X[:500], [[int(label)] for label in random.integers(0, 300, 500)])
search = threading.Thread(target=model.predict_topk, args=(X, 50))
search.start()
while search.is_alive():
    model.labels.retire(0)
    model.labels.restore(0)
print("ended")
"""


def test_a_label_change_waits_for_a_long_search_without_the_interpreter_lock():
    """The search needs the interpreter lock to report its progress."""
    command = [sys.executable, "-c", LABELS_CHANGE_DURING_A_SEARCH]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout == "ended\n", ended.stderr
