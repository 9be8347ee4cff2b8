"""Time a method on one thread and on two, in turns: training, batch prediction, and one row at a time.

    python benchmarks/threads.py linear-tree eurlex57k
    python benchmarks/threads.py craft-forest delicious/xmc_split0 --rounds 2 --set n_trees=20

The data set is a folder with train.txt.xz and test.txt.xz, or its name below LABELWOOD_DATA or
../shared/data. Prints the best wall seconds of the rounds, and the median and 99th percentile of
`predict_topk` on 300 random test rows, one row per call. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from labelwood.data import load
from labelwood.methods import METHODS

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS = (1, 2)


def seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def parameters(words: list[str]) -> dict:
    """Parse NAME=VALUE pairs; a value is JSON, or a string if it is not valid JSON."""
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    folder = Path(options.data)
    if not folder.is_dir():
        folder = Path(os.environ.get("LABELWOOD_DATA", BESIDE)) / options.data
    train, test = (load(folder / f"{part}.txt.xz") for part in ("train", "test"))
    rows = test.X.to_scipy()
    model = METHODS[options.method](**parameters(options.set))
    fits, batches = ({threads: [] for threads in THREADS} for _ in range(2))
    for _ in range(options.rounds):
        for threads in THREADS:
            model.set_params(n_jobs=threads)
            fits[threads].append(seconds(lambda: model.fit(train.X, train.Y)))
            model.predict_topk(rows[:10], k=5)
            batches[threads] += [seconds(lambda: model.predict_topk(rows, k=5)) for _ in range(3)]
    picked = np.random.default_rng(0).permutation(rows.shape[0])[:300]
    singles = [rows[[row]] for row in picked]
    model.set_params(n_jobs=1)
    alone = [1e3 * seconds(lambda: model.predict_topk(row, k=5)) for row in singles]  # noqa: B023 - called at once
    one, two = (min(fits[threads]) for threads in THREADS)
    print(f"training: {one:.2f} s on one thread, {two:.2f} s on two, {one / two:.2f}x")
    one, two = (1e3 * min(batches[threads]) / rows.shape[0] for threads in THREADS)
    print(f"batch: {one:.4f} ms per row on one thread, {two:.4f} ms on two, {one / two:.2f}x")
    print(f"one row: p50 {np.percentile(alone, 50):.3f} ms, p99 {np.percentile(alone, 99):.3f} ms")


if __name__ == "__main__":
    main()
