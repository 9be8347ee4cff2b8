"""A long stream in which labels keep appearing: time per example and memory against what was seen.

    labelwood data synth stream.npz --rows 1000000 --labels 50000 --stream
    python -m experiments.oplt.stream stream.npz

Learns in batches and prints, for ten points of the stream, microseconds of CPU and classifiers updated per example
since the last point, the depth of the tree in the mean of that time and at its end, nodes, features seen, and the
bytes held.
"""

import sys
import time
from itertools import pairwise

import numpy as np

from labelwood import OnlineTree
from labelwood.data import load

LOOKS = 10  # batches between two looks at the depth


def main(path: str, n_points: int = 10, batch: int = 1000) -> None:
    """Learn the stream and print a line per point."""
    made = load(path)
    model = OnlineTree(n_jobs=1)
    updates = 0
    bounds = np.linspace(0, made.n_rows, n_points + 1).astype(int)
    for start, stop in pairwise(bounds):
        seconds, depths = 0.0, []
        for number, at in enumerate(range(start, stop, batch)):
            end = min(stop, at + batch)
            X, Y = made.X.rows(at, end), made.Y.rows(at, end)
            clock = time.process_time()
            model.partial_fit(X, Y)
            seconds += time.process_time() - clock
            if number % LOOKS == 0:
                depths.append(model.describe()["depth"])
        facts = model.describe()
        print(
            f"{stop:>9} rows  {1e6 * seconds / (stop - start):7.1f} us/example  "
            f"{(facts['updates'] - updates) / (stop - start):6.0f} updates/example  "
            f"depth {np.mean(depths):4.1f}, {facts['depth']:>3}  nodes {facts['nodes']:>7}  "
            f"features {facts['features_seen']:>7}  {facts['bytes'] / 2**20:8.0f} MB",
            flush=True,
        )
        updates = facts["updates"]


if __name__ == "__main__":
    main(sys.argv[1])
