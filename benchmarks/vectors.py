"""Dense rows: this version, an earlier one, PECOS XR-Linear and a NumPy product, turn by turn on the same vectors.

    python benchmarks/vectors.py --before PYTHON --pecos PYTHON [--rows 100000] [--labels 20000] [--rounds 2]

PYTHON is the interpreter of an environment with an earlier labelwood, or with libpecos (benchmarks/versus builds one).
Every measurement is a process of its own with one thread. Times are CPU seconds, the smallest of the rounds. The peak
is that of the process above the one before it read any data. Precision is measured on 5,000 rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

WIDTH, N_TEST, KS = 384, 5_000, (1, 3, 5)
_OUT = Path("out/vectors")


def peak_bytes() -> int:
    """The most memory that this program has held; getrusage also counts the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


def read(folder: Path) -> tuple[Any, Any, Any, Any]:
    """Vectors and labels of training and of testing."""
    return (
        np.load(folder / "X.npy"), sp.load_npz(folder / "Y.npz"),
        np.load(folder / "X_test.npy"), sp.load_npz(folder / "Y_test.npz"),
    )  # fmt: skip


def precision(truth: Any, top: Any) -> list[float]:
    """P@1, P@3 and P@5 in percent."""
    hits = np.take_along_axis(truth.toarray() > 0, np.maximum(top, 0), axis=1) & (top >= 0)
    return [round(100 * float(hits[:, :k].mean()), 2) for k in KS]


def timed(work: Any) -> tuple[float, Any]:
    """CPU seconds, and the result."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def labelwood(folder: Path) -> dict[str, Any]:
    """LinearTree with its defaults on a NumPy array."""
    from labelwood import LinearTree

    start = peak_bytes()
    X, Y, X_test, Y_test = read(folder)
    train, model = timed(lambda: LinearTree(n_jobs=1).fit(X, Y))
    peak = peak_bytes() - start
    model.predict_topk(X_test[:64], 5)
    predict, (top, _) = timed(lambda: model.predict_topk(X_test, 5))
    one, _ = timed(lambda: [model.predict_topk(X_test[i : i + 1], 5) for i in range(300)])
    return {
        "train_seconds": train, "row_ms": predict / N_TEST * 1e3, "one_row_ms": one / 300 * 1e3,
        "peak_mb": peak / 1e6, "precision": precision(Y_test, top),
    }  # fmt: skip


def pecos(folder: Path) -> dict[str, Any]:
    """XR-Linear as its documentation trains it: PIFA vectors, hierarchical k-means, beam 10."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    start = peak_bytes()
    X, Y, X_test, Y_test = read(folder)
    Y = sp.csr_matrix(Y, dtype=np.float32)

    def fit() -> Any:
        vectors = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=1)
        return XLinearModel.train(X, Y, C=Indexer.gen(vectors, threads=1), threads=1)

    train, model = timed(fit)
    peak = peak_bytes() - start
    model.save(str(folder / "pecos-model"))
    loaded = XLinearModel.load(str(folder / "pecos-model"), is_predict_only=True)
    loaded.predict(X_test[:64], only_topk=5, threads=1)
    predict, found = timed(lambda: loaded.predict(X_test, only_topk=5, threads=1))
    top = np.full((N_TEST, 5), -1)
    for row in range(N_TEST):
        own = slice(*found.indptr[row : row + 2])
        order = np.argsort(-found.data[own], kind="stable")
        top[row, : len(order)] = found.indices[own][order]
    return {
        "train_seconds": train, "row_ms": predict / N_TEST * 1e3, "peak_mb": peak / 1e6,
        "precision": precision(Y_test, top),
    }  # fmt: skip


def product(folder: Path) -> dict[str, Any]:
    """The product of all rows with one weight vector per label, in batches of 1,000 rows, and with the best five."""
    _, Y, X_test, _ = read(folder)
    weights = np.random.default_rng(0).standard_normal((WIDTH, Y.shape[1])).astype(np.float32)

    def scores() -> None:
        for start in range(0, N_TEST, 1000):
            X_test[start : start + 1000] @ weights

    def best() -> None:
        for start in range(0, N_TEST, 1000):
            np.argpartition(-(X_test[start : start + 1000] @ weights), 5, axis=1)[:, :5]

    scores()
    return {"row_ms": timed(scores)[0] / N_TEST * 1e3, "with_best_ms": timed(best)[0] / N_TEST * 1e3}


CONTENDERS = {"now": labelwood, "before": labelwood, "pecos": pecos, "product": product}


def make(folder: Path, n_rows: int, n_labels: int) -> None:
    """Write the vectors and the labels, unless they are there."""
    from vectors_data import made

    if (folder / "Y_test.npz").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for rows, ending in ((n_rows, ""), (N_TEST, "_test")):
        found = made(rows, WIDTH, n_labels)
        np.save(folder / f"X{ending}.npy", found.X)
        sp.save_npz(folder / f"Y{ending}.npz", sp.csr_matrix(found.Y))


def main() -> None:
    """Run the contenders in turns and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--before", help="interpreter with an earlier labelwood")
    parser.add_argument("--pecos", help="interpreter with libpecos")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = _OUT / f"{options.rows}-{options.labels}"
    if options.run:
        print(json.dumps(CONTENDERS[options.run](folder)))
        return
    make(folder, options.rows, options.labels)
    pythons = {"now": sys.executable, "before": options.before, "pecos": options.pecos, "product": sys.executable}
    found: dict[str, list[dict[str, Any]]] = {}
    own = ["--rows", str(options.rows), "--labels", str(options.labels)]
    for _ in range(options.rounds):
        for name, python in pythons.items():
            if python is None:
                continue
            ran = subprocess.run([python, __file__, *own, "--run", name], check=True, capture_output=True, text=True)
            found.setdefault(name, []).append(json.loads(ran.stdout.splitlines()[-1]))
            print(name, found[name][-1], file=sys.stderr, flush=True)
    for name, runs in found.items():
        best = {key: min(run[key] for run in runs) for key in runs[0] if key != "precision"}
        print(name, *(f"{key}={value:.4g}" for key, value in best.items()), runs[0].get("precision", ""))


if __name__ == "__main__":
    main()
