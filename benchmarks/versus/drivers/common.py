"""Code shared by the drivers: arguments, clocks, result file.

A driver is a small script that runs in its peer's environment, which has numpy and scipy but not Labelwood.
It subclasses :class:`Driver` and ends with ``run(MyDriver)``. versus.py starts it twice per measurement, as
two processes, so that the model is loaded in a fresh process and each phase has its own peak memory:

    driver.py train   --data DIR --work DIR --threads N --options JSON --result FILE
    driver.py predict --data DIR --work DIR --threads N --options JSON --result FILE
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

K = int(os.environ.get("VERSUS_K", "5"))  # labels predicted for a row
SINGLES = 300
# Stop after this time: a peer that needs half a second per example would take minutes for 300 examples.
SINGLES_SECONDS = 15.0
BATCH_REPEATS = 3
# Do not repeat a batch that takes longer than this.
BATCH_SECONDS = 20.0


class Driver:
    """How a peer trains, saves, loads and predicts; ``prepare`` and the ``native`` methods are not timed."""

    def __init__(self, data: Path, work: Path, threads: int, options: dict[str, Any]) -> None:
        self.data, self.work, self.threads, self.options = data, work, threads, options
        self.model_path = work / "model"

    def prepare(self) -> None:
        """Write the input file of a peer that cannot train on matrices in memory, once per data set."""

    def training_data(self) -> tuple[Any, Any]:
        """Read the training rows; reading them is not timed."""
        X, Y = (read_matrix(self.data / f"train_{side}.npz") for side in "XY")
        return X, Y

    def train(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> dict[str, float]:
        """Train on matrices in memory, save the model to ``self.model_path``; return further fields."""
        raise NotImplementedError

    def load(self) -> Any:
        """Load the saved model."""
        raise NotImplementedError

    def native_batch(self, X: sp.csr_matrix) -> Any:
        """Convert a batch to the input form of the peer's Python API."""
        return X

    def predict(self, model: Any, batch: Any) -> Any:
        """Predict the K best labels of every row; return them in the peer's own form."""
        raise NotImplementedError

    def as_labels(self, predicted: Any) -> np.ndarray:
        """Convert the result of :meth:`predict` to ids [rows, K], best first, padded with -1."""
        raise NotImplementedError

    def native(self, X: sp.csr_matrix, row: int) -> Any:
        """Convert one example to the input form of the peer's Python API."""
        return X[row]

    def predict_one(self, model: Any, example: Any) -> Any:
        """Predict the K best labels of one example through the peer's Python API."""
        return self.predict(model, example)


def padded(rows: Any) -> np.ndarray:
    """Convert lists of label ids to an array [rows, K], padded with -1."""
    labels = np.full((len(rows), K), -1, np.int32)
    for i, row in enumerate(rows):
        best = list(row)[:K]
        labels[i, : len(best)] = best
    return labels


def top_of_csr(scores: sp.csr_matrix) -> np.ndarray:
    """The K best columns of every row of a sparse score matrix, padded with -1."""
    rows = []
    for start, stop in zip(scores.indptr[:-1], scores.indptr[1:], strict=True):
        order = np.argsort(-scores.data[start:stop], kind="stable")[:K]
        rows.append(scores.indices[start:stop][order])
    return padded(rows)


def top_of_dense(scores: np.ndarray) -> np.ndarray:
    """The K best columns of every row of a dense score matrix."""
    k = min(K, scores.shape[1])
    part = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, part, axis=1), axis=1, kind="stable")
    return padded(np.take_along_axis(part, order, axis=1))


def read_matrix(path: Path) -> sp.csr_matrix:
    """Read a CSR matrix as float32 with sorted indices."""
    matrix = sp.csr_matrix(sp.load_npz(path))
    matrix.sort_indices()
    return matrix.astype(np.float32, copy=False)


def bytes_under(path: Path) -> int:
    """Bytes of a file, or of all files of a directory."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files)


class Clock:
    """Wall and CPU seconds of a ``with`` block; CPU seconds include threads and finished child processes."""

    def __enter__(self) -> Clock:
        self._wall, self._cpu = time.perf_counter(), _cpu()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, _cpu() - self._cpu


def _cpu() -> float:
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in usages)


def memory(field: str) -> int:
    """A field of /proc/self/status in bytes. VmHWM, unlike ru_maxrss, does not start at the parent's peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def forget_peak() -> None:
    """Reset the peak memory (VmHWM), so that it excludes reading the input; ignored where forbidden."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def measure_training(driver: Driver) -> dict[str, Any]:
    """Measure the time from matrices in memory to a saved model, its size, and the peak memory."""
    driver.prepare()
    X, Y = driver.training_data()
    if driver.model_path.is_dir():
        shutil.rmtree(driver.model_path)
    driver.model_path.unlink(missing_ok=True)
    forget_peak()
    with Clock() as clock:
        extra = driver.train(X, Y)
    # Subtract the seconds that the driver reports for work that is not training, such as parsing.
    excluded = extra.pop("excluded_seconds", 0.0), extra.pop("excluded_cpu_seconds", 0.0)
    return {
        "train_seconds": clock.wall - excluded[0],
        "train_cpu_seconds": clock.cpu - excluded[1],
        "model_bytes": bytes_under(driver.model_path),
        "train_peak_bytes": memory("VmHWM"),
        **extra,
    }


def measure_prediction(driver: Driver, predictions: Path) -> dict[str, Any]:
    """Measure times of loading, a batch and one example, and peak memory; write labels to ``predictions``."""
    X = read_matrix(driver.data / "test_X.npz")
    batch = driver.native_batch(X)
    forget_peak()
    with Clock() as clock:
        model = driver.load()
    result: dict[str, Any] = {"load_seconds": clock.wall}

    # The first call may densify or map weights; later calls show the time in steady use.
    walls: list[float] = []
    while len(walls) < BATCH_REPEATS and sum(walls) < BATCH_SECONDS:
        with Clock() as clock:
            predicted = driver.predict(model, batch)
        walls.append(clock.wall)
    result |= {
        "first_batch_ms": 1000 * walls[0] / X.shape[0],
        "batch_ms": 1000 * min(walls) / X.shape[0],
        "batch_repeats": len(walls),
    }
    labels = driver.as_labels(predicted)
    if labels.shape != (X.shape[0], K):
        raise ValueError(f"predictions must be {(X.shape[0], K)}; got {labels.shape}")
    np.savez_compressed(predictions, labels=labels.astype(np.int32))

    rows = np.random.default_rng(0).choice(X.shape[0], min(SINGLES, X.shape[0]), replace=False)
    examples = [driver.native(X, int(row)) for row in rows]
    driver.predict_one(model, examples[0])
    times: list[float] = []
    for example in examples:
        started = time.perf_counter()
        driver.predict_one(model, example)
        times.append(time.perf_counter() - started)
        if sum(times) > SINGLES_SECONDS:
            break
    return result | {
        "one_ms_p50": 1000 * float(np.percentile(times, 50)),
        "one_ms_p99": 1000 * float(np.percentile(times, 99)),
        "one_examples": len(times),
        "predict_peak_bytes": memory("VmHWM"),
    }


def run(driver_class: type[Driver]) -> None:
    """Run the command line of a driver."""
    parser = argparse.ArgumentParser()
    parser.add_argument("phase", choices=["train", "predict"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--result", type=Path, required=True)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    driver = driver_class(args.data.resolve(), args.work.resolve(), args.threads, args.options)
    if args.phase == "train":
        result = measure_training(driver)
    else:
        result = measure_prediction(driver, args.work / "predictions.npz")
    partial = args.result.with_suffix(".part")
    partial.write_text(json.dumps(result))
    partial.replace(args.result)
