"""Prediction time of the forests in milliseconds per row: a batch, its routing alone, and one row at a time.

    python -m benchmarks.kernels.forest_predict delicious --out times.json
    python -m benchmarks.kernels.forest_predict delicious --models models
    python -m benchmarks.kernels.forest_predict yso_finna_en --trees 10 --train-rows 20000
    python -m benchmarks.kernels.forest_predict yso_finna_en --trees 10 --settings --models models

The forests have their default parameters, except that LdsmForest keeps all weights; with `--settings` they have
those of experiments/settings.py for the data. Re-ranking is not timed. With `--models` the forests are read from that
folder, or trained and written there, so that two versions of the library can be timed on the same trees. All times are
CPU time on one thread and the best of `--rounds`. The time of one row is the mean of a thousand rows, one row per call;
the last figure is that time divided by the time of a row in a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import labelwood
from experiments.settings import parameters
from labelwood import data
from labelwood.run_context import RunContext

DATA = Path(os.environ.get("LABELWOOD_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
FORESTS = {
    "ldsm": (labelwood.LdsmForest, {"weight_threshold": 0.0}),
    "craft": (labelwood.CraftForest, {}),
    "graph": (labelwood.GraphForest, {}),
    "fastxml": (labelwood.FastXmlForest, {}),
}
RUN = RunContext(n_threads=1)


def read(name, part):
    folder = DATA / name / "xmc_split0"
    return data.load(next((folder if folder.exists() else DATA / name).glob(f"{part}.txt*")), label_names=False)


def model_of(name, kind, folder, options):
    path = folder / f"{name}-{kind}{'-settings' * options.settings}"
    if not path.exists():
        train = read(name, "train")
        rows = slice(0, options.train_rows)
        forest, own = FORESTS[kind]
        given = {**parameters(forest.method_name, name), "rerank": False} if options.settings else own
        made = forest(**{**given, "n_trees": options.trees, "n_jobs": 1})
        made.fit(train.X.to_scipy()[rows], train.Y.to_scipy()[rows]).save(path)
    return labelwood.load(path)


def best(work, rounds):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def one_by_one(work, X, rounds):
    """Seconds per row of a thousand rows, one row per call."""
    rows = [X.rows(row, row + 1) for row in range(min(1000, X.n_rows))]
    return best(lambda: [work(row) for row in rows], rounds) / len(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--forests", default=",".join(FORESTS))
    parser.add_argument("--models", type=Path)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--train-rows", type=int, help="train on this many rows instead of all")
    parser.add_argument("--settings", action="store_true", help="the parameters of experiments/settings.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="JSON file to write the times to")
    options = parser.parse_args()
    X = read(options.name, "test").X
    found = {}
    with tempfile.TemporaryDirectory() as made:
        for kind in options.forests.split(","):
            forest = model_of(options.name, kind, options.models or Path(made), options).forest_
            whole = best(lambda forest=forest: forest.topk(X, 5, RUN), options.rounds)
            routing = best(lambda forest=forest: forest.paths(X, RUN), options.rounds)
            alone = one_by_one(lambda x, forest=forest: forest.topk(x, 5, RUN), X, options.rounds)
            batch = whole / X.n_rows
            found[kind] = {
                "batch": 1e3 * batch, "routing": 1e3 * routing / X.n_rows, "one": 1e3 * alone,
                "one over batch": alone / batch,
            }  # fmt: skip
            figures = ", ".join(f"{what} {ms:.4f}" for what, ms in found[kind].items())
            print(f"{options.name} {kind}, {forest.n_trees} trees, ms per row: {figures}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
