"""Prediction time of the forests in milliseconds per row: a batch, its routing alone, and one row at a time.

    python benchmarks/kernels/forest_predict.py delicious --out times.json
    python benchmarks/kernels/forest_predict.py delicious --models models

The forests have their default parameters, except that LdsmForest keeps all weights. With `--models` they are
read from that folder, or trained and written there, so that two versions of the library can be timed on the
same trees. All times are on one thread and the best of `--rounds`. A batch is timed in CPU time. The time of
one row is the median wall time of a thousand rows, one row per call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import labelwood
from labelwood import data
from labelwood.run_context import RunContext

DATA = Path(os.environ.get("LABELWOOD_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
FORESTS = {
    "ldsm": lambda: labelwood.LdsmForest(weight_threshold=0.0, n_jobs=1),
    "craft": lambda: labelwood.CraftForest(n_jobs=1),
    "graph": lambda: labelwood.GraphForest(n_jobs=1),
}
RUN = RunContext(n_threads=1)


def read(name, part):
    folder = DATA / name / "xmc_split0"
    return data.load(next((folder if folder.exists() else DATA / name).glob(f"{part}.txt*")), label_names=False)


def model_of(name, kind, folder):
    path = folder / f"{name}-{kind}"
    if not path.exists():
        train = read(name, "train")
        FORESTS[kind]().fit(train.X, train.Y).save(path)
    return labelwood.load(path)


def best(work, rounds):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def one_by_one(work, X):
    times = []
    for row in range(min(1000, X.n_rows)):
        alone = X.rows(row, row + 1)
        start = time.perf_counter()
        work(alone)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--forests", default=",".join(FORESTS))
    parser.add_argument("--models", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="JSON file to write the times to")
    options = parser.parse_args()
    X = read(options.name, "test").X
    found = {}
    with tempfile.TemporaryDirectory() as made:
        for kind in options.forests.split(","):
            forest = model_of(options.name, kind, options.models or Path(made)).forest_
            whole = best(lambda forest=forest: forest.topk(X, 5, RUN), options.rounds)
            routing = best(lambda forest=forest: forest.paths(X, RUN), options.rounds)
            alone = min(one_by_one(lambda x, forest=forest: forest.topk(x, 5, RUN), X) for _ in range(options.rounds))
            found[kind] = {"batch": 1e3 * whole / X.n_rows, "routing": 1e3 * routing / X.n_rows, "one": 1e3 * alone}
            figures = ", ".join(f"{what} {ms:.4f}" for what, ms in found[kind].items())
            print(f"{options.name} {kind}, {forest.n_trees} trees, ms per row: {figures}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
