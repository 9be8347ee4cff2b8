"""One-example partial_fit through Python: percentiles of a call's time, on a tree that has seen a data set.

python experiments/oplt/latency.py yso_finna_en
"""

import sys
import time

import numpy as np
from datasets import load_pair

from labelwood import OnlineTree


def main(name, calls=3000):
    train, test = load_pair(name)
    model = OnlineTree(n_jobs=1).fit(train.X, train.Y)
    for kind in ("CSR", "dict"):
        wall, cpu = [], []
        for row in range(min(calls, test.X.n_rows)):
            X, Y = test.X.rows(row, row + 1), test.Y.rows(row, row + 1)
            if kind == "dict":
                X = [dict(zip(X.indices.tolist(), X.data.tolist(), strict=True))]
                Y = [Y.indices.tolist()]
            start, busy = time.perf_counter(), time.thread_time()
            model.partial_fit(X, Y)
            wall.append(time.perf_counter() - start)
            cpu.append(time.thread_time() - busy)
        for clock, seconds in (("wall", wall), ("CPU", cpu)):
            p50, p90, p99 = np.percentile(1e6 * np.array(seconds), [50, 90, 99])
            print(f"{kind}, {clock}: p50 {p50:.0f} us, p90 {p90:.0f} us, p99 {p99:.0f} us")


if __name__ == "__main__":
    main(sys.argv[1])
