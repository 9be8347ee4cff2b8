"""Training of LdsmForest on one and on two threads, in turns: wall seconds, and their ratio.

python experiments/ldsm/threads.py delicious --trees 10 --rounds 3
"""

from __future__ import annotations

import argparse
import statistics
import time

from common import read

from labelwood import LdsmForest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    train = read(options.name, "train")
    times = {1: [], 2: []}
    for _ in range(options.rounds):
        for threads, taken in times.items():
            start = time.perf_counter()
            LdsmForest(n_trees=options.trees, weight_threshold=0.0, n_jobs=threads).fit(*train)
            taken.append(time.perf_counter() - start)
    one, two = (statistics.median(times[threads]) for threads in (1, 2))
    print(f"{options.name}, {options.trees} trees: {one:.2f} s, {two:.2f} s on two threads, {one / two:.2f}x")


if __name__ == "__main__":
    main()
