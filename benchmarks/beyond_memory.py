"""Train on a generated data set several times larger than the memory limit.

    python benchmarks/beyond_memory.py --gigabytes 3 --max-memory 1GB
    python benchmarks/beyond_memory.py --gigabytes 0.3 --compare

Writes a data set directory below --folder and removes it at the end. Each training runs in its own process,
so that its peak memory is its own. With --compare each method is also trained on rows held in memory; P@1,
P@3 and P@5 on the test rows must then be equal. Prints one JSON line per training: bytes of the rows on disk,
the limit, the peak memory of the process (VmHWM), seconds, precision.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from labelwood.data import Dataset, load
from labelwood.data.mapped_directory import write_directory
from labelwood.data.synth import Shape, synth
from labelwood.methods import METHODS
from labelwood.metrics import precision_at_k
from labelwood.resources.memory import parse_bytes, peak_resident, resident
from labelwood.sparse import CSR

ROW_BYTES = 8 * 155  # approximate size of a generated row
DRAWN = 1 << 16  # distinct rows; further rows repeat them with other values
TEST_ROWS = 5000
SETTINGS = {"linear-tree": {"arity": 8, "max_leaf": 16}, "online-tree": {}}


def generate(folder: Path, gigabytes: float) -> None:
    """Write the training set and the test set."""
    random = np.random.default_rng(0)
    shape = Shape(DRAWN + TEST_ROWS, n_labels=64, n_features=20_000, words_per_row=300)
    drawn = synth(shape)
    test = Dataset(drawn.X.rows(DRAWN, DRAWN + TEST_ROWS), drawn.Y.rows(DRAWN, DRAWN + TEST_ROWS))
    write_directory(folder / "test.lw", [test])

    def parts() -> Iterator[Dataset]:
        for _ in range(math.ceil(gigabytes * 1e9 / (DRAWN * ROW_BYTES))):
            rows = random.integers(0, DRAWN, DRAWN)
            X, Y = drawn.X.take(rows), drawn.Y.take(rows)
            values = (0.5 + random.random(X.nnz, np.float32)) * X.data
            yield Dataset(CSR(X.indptr, X.indices, values, X.n_cols), Y)

    write_directory(folder / "train.lw", parts())


def train(folder: Path, method: str, limit: int | None) -> None:
    dataset, test = load(folder / "train.lw"), load(folder / "test.lw")
    model = METHODS[method](n_jobs=1, **SETTINGS[method])
    X = dataset.X
    if limit is None:
        X = X.take(np.arange(dataset.n_rows))
    before = resident()
    started = time.perf_counter()
    model.fit(X, dataset.Y, max_memory=limit)
    seconds = time.perf_counter() - started
    peak = peak_resident()
    top = model.topk_ids(test.X, 5)
    print(
        json.dumps(
            {
                "method": method,
                "data_bytes": dataset.X.indices.nbytes + dataset.X.data.nbytes,
                "rows": dataset.n_rows,
                "max_memory": limit,
                "before": before,
                "peak": peak,
                "below_limit": None if limit is None else peak <= limit,
                "seconds": round(seconds, 1),
                **{f"P@{k}": float(precision_at_k(test.Y, top, k)) for k in (1, 3, 5)},
            }
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--max-memory", default="1GB")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--methods", nargs="*", default=["linear-tree", "online-tree"])
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--train", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        method, limit = options.train
        train(options.folder, method, None if limit == "none" else int(limit))
        return
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        generate(folder, options.gigabytes)
        limit = parse_bytes(options.max_memory, owner="beyond_memory", name="--max-memory")
        for method in options.methods:
            for given in (limit, None) if options.compare else (limit,):
                word = "none" if given is None else str(given)
                command = [sys.executable, __file__, "--folder", str(folder), "--train", method, word]
                subprocess.run(command, check=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
