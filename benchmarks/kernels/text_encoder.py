"""TfidfEncoder against scikit-learn's TfidfVectorizer on the texts of eurlex57k: equal matrices, and times.

    python benchmarks/kernels/text_encoder.py [--rows 45000] [--rounds 3]

The encoders take turns, so that a busy machine slows both; the medians are compared. Use the CPU time to
compare one thread, and the wall time to compare two threads on two idle cores. "on idle cores" estimates that
wall time on a busy machine: the CPU time of the calling thread plus that of its workers divided by the number
of threads.
"""

from __future__ import annotations

import argparse
import lzma
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from labelwood.text import TfidfEncoder

DATA = Path(os.environ.get("LABELWOOD_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
OPTIONS: dict[str, dict[str, Any]] = {
    "words": {"sublinear_tf": True},
    "words, min_df 2, bigrams": {"sublinear_tf": True, "min_df": 2, "ngram_range": (1, 2)},
}


class Times(NamedTuple):
    """Seconds that a call took."""

    wall: float
    processor: float
    caller: float  # CPU time of the calling thread, part of ``processor``

    def on_idle_cores(self, n_threads: int) -> float:
        """Estimate the wall time if every worker had its own core."""
        return self.caller + (self.processor - self.caller) / n_threads


def timed(work: Callable[[], Any]) -> tuple[Any, Times]:
    before = Times(time.perf_counter(), time.process_time(), time.thread_time())
    result = work()
    after = Times(time.perf_counter(), time.process_time(), time.thread_time())
    return result, Times(*(end - start for start, end in zip(before, after, strict=True)))


def check_equal(ours: Any, theirs: Any) -> None:
    theirs.sort_indices()
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.abs(ours.data - theirs.data).max() < 1e-6


def compare(name: str, options: dict[str, Any], texts: list[str], rounds: int) -> None:
    contenders = {
        "TfidfVectorizer": lambda: TfidfVectorizer(**options).fit_transform(texts),
        "1 thread": lambda: TfidfEncoder(n_jobs=1, **options).fit_transform(texts),
        "2 threads": lambda: TfidfEncoder(n_jobs=2, **options).fit_transform(texts),
    }
    taken: dict[str, list[Times]] = {key: [] for key in contenders}
    for _ in range(rounds):
        results = {}
        for key, work in contenders.items():
            results[key], times = timed(work)
            taken[key].append(times)
        check_equal(results["1 thread"], results["TfidfVectorizer"])
        check_equal(results["2 threads"], results["TfidfVectorizer"])
    n_rows, n_columns = results["1 thread"].shape
    print(f"{name}: {n_rows} x {n_columns}, {results['1 thread'].nnz} entries, equal")
    medians = {key: Times(*map(statistics.median, zip(*rows, strict=True))) for key, rows in taken.items()}
    theirs = medians["TfidfVectorizer"]
    for key, times in medians.items():
        idle = times.on_idle_cores(2 if key == "2 threads" else 1)
        print(
            f"  {key:<16} wall {times.wall:6.2f} s ({theirs.wall / times.wall:4.1f}x)   "
            f"processor {times.processor:6.2f} s ({theirs.processor / times.processor:4.1f}x)   "
            f"on idle cores {idle:6.2f} s ({theirs.processor / idle:4.1f}x)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=45000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bigrams", action="store_true", help="also encode word bigrams; needs several GB of memory")
    arguments = parser.parse_args()
    with lzma.open(DATA / "eurlex57k" / "train.raw.txt.xz", "rt", encoding="utf-8", newline="\n") as file:
        texts = file.read().split("\n")[: arguments.rows]
    texts = texts if texts[-1] else texts[:-1]
    for name, options in OPTIONS.items():
        if "bigrams" not in name or arguments.bigrams:
            compare(name, options, texts, arguments.rounds)


if __name__ == "__main__":
    main()
