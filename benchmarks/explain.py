"""How many suggestions an explanation of an online model costs: one row at a time, on documents and on short vectors.

``python benchmarks/explain.py DATA ...`` reads ``train.txt.xz`` in the directories of data sets. It also makes rows of
8, 50 and 200 words. Explanations and suggestions are timed in turn, repeatedly; the least CPU seconds of a row count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labelwood import LivingTree, OnlineForest, OnlineTree, data
from labelwood.data.synth import Shape, synth
from labelwood.sparse import CSR

METHODS = (OnlineTree, OnlineForest, LivingTree)
N_ASKED, N_ROUNDS, K = 40, 12, 5


def data_sets(folders: list[Path], n_rows: int) -> Iterator[tuple[str, CSR, CSR]]:
    """Names, rows and labels: of the given data sets, and made ones."""
    for folder in folders:
        found = data.load(folder / "train.txt.xz")
        kept = min(n_rows, found.n_rows)
        yield folder.name, found.X.rows(0, kept), found.Y.rows(0, kept)
    for n_words in (8, 50, 200):
        shape = Shape(n_rows=min(n_rows, 3000), n_labels=600, n_features=20_000, words_per_row=n_words)
        made = synth(shape)
        yield f"made, {n_words} words", made.X, made.Y


def seconds(calls: list[Callable[..., Any]], rows: list[CSR]) -> list[float]:
    """CPU seconds of each call, the mean over rows of the least of several rounds, in turn."""
    least = np.full((len(calls), len(rows)), np.inf)
    for _ in range(N_ROUNDS):
        for number, call in enumerate(calls):
            for place, row in enumerate(rows):
                started = time.process_time_ns()
                call(row, k=K)
                least[number, place] = min(least[number, place], time.process_time_ns() - started)
    means: list[float] = (least.mean(axis=1) / 1e9).tolist()
    return means


def main() -> None:
    """Print a line for each data set and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DATA")
    parser.add_argument("--rows", type=int, default=5000, help="rows to train on")
    options = parser.parse_args()
    print(f"{'data':<20} {'method':<14} {'words':>6} {'suggestion, ms':>15} {'explanation, ms':>16} {'ratio':>6}")
    for name, X, Y in data_sets(options.folders, options.rows):
        for method in METHODS:
            model = method(n_jobs=1).fit(X, Y)
            asked = np.linspace(0, X.n_rows - 1, N_ASKED).astype(int).tolist()
            rows = [X.rows(row, row + 1) for row in asked]
            suggested, explained = (1000 * one for one in seconds([model.predict_topk, model.explain], rows))
            words = sum(row.nnz for row in rows) / N_ASKED
            print(
                f"{name:<20} {method.__name__:<14} {words:>6.0f} {suggested:>15.3f} {explained:>16.3f} "
                f"{explained / suggested:>6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
