"""Training on Ray with two workers against training on two threads, in turns.

    build/ray/bin/python benchmarks/ray_overhead.py eurlex57k --rounds 3

`make build/ray/installed` builds the environment. Ray writes below HOME, so set HOME to a scratch folder. The
data set is a folder with train.txt.xz, or its name below LABELWOOD_DATA. The start of the cluster and the
first training of each kind, which starts processes and loads code, are not counted. Prints one JSON line: the
best seconds of each kind, their ratio, and whether the two models are equal byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import ray

from labelwood import LinearTree
from labelwood.data import load

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
STORE = 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n-trees", type=int, default=3)
    options = parser.parse_args()
    folder = Path(options.data)
    if not folder.is_dir():
        folder = Path(os.environ.get("LABELWOOD_DATA", BESIDE)) / options.data
    dataset = load(folder / "train.txt.xz")
    started = time.perf_counter()
    ray.init(num_cpus=2, object_store_memory=STORE, include_dashboard=False, log_to_driver=False)
    cluster_seconds = time.perf_counter() - started
    model = LinearTree(n_trees=options.n_trees, n_jobs=2)
    seconds: dict[str, list[float]] = {"threads": [], "ray": []}
    models = {}
    for turn in range(options.rounds + 1):
        for executor, taken in seconds.items():
            started = time.perf_counter()
            model.fit(dataset.X, dataset.Y, executor=executor)
            if turn:
                taken.append(time.perf_counter() - started)
            models[executor] = {name: array.tobytes() for name, array in model.to_saved()[1].items()}
    best = {executor: min(found) for executor, found in seconds.items()}
    print(
        json.dumps(
            {
                "data": options.data,
                "rows": dataset.n_rows,
                "n_trees": options.n_trees,
                "cluster_seconds": round(cluster_seconds, 2),
                **{f"{executor}_seconds": round(value, 3) for executor, value in best.items()},
                "ratio": round(best["ray"] / best["threads"], 3),
                "same_bytes": models["ray"] == models["threads"],
            }
        )
    )


if __name__ == "__main__":
    main()
