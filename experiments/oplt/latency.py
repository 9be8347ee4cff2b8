"""One-example partial_fit through Python: percentiles of the time of a call, on a tree that has seen a data set.

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
        seconds = []
        for row in range(min(calls, test.X.n_rows)):
            X, Y = test.X.rows(row, row + 1), test.Y.rows(row, row + 1)
            if kind == "dict":
                X = [dict(zip(X.indices.tolist(), X.data.tolist(), strict=True))]
                Y = [Y.indices.tolist()]
            start = time.perf_counter()
            model.partial_fit(X, Y)
            seconds.append(time.perf_counter() - start)
        points = np.percentile(1e6 * np.array(seconds), [50, 90, 99])
        print(f"{kind}: p50 {points[0]:.0f} us, p90 {points[1]:.0f} us, p99 {points[2]:.0f} us")


if __name__ == "__main__":
    main(sys.argv[1])
