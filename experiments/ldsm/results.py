"""LdsmForest on a test split: quality, depth, processor seconds and memory, one line a seed and their mean.

python experiments/ldsm/results.py delicious --seeds 3
python experiments/ldsm/results.py eurlex57k --seeds 1 max_nodes=2000 epochs=5 weight_threshold=0.1
"""

from __future__ import annotations

import argparse
import ast

import numpy as np
from common import measure, peak_megabytes, read


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("parameters", nargs="*", help="name=value")
    options = parser.parse_intermixed_args()
    given = {}
    for item in options.parameters:
        name, value = item.split("=")
        try:
            given[name] = ast.literal_eval(value)
        except ValueError:
            given[name] = value
    train, test = read(options.name, "train"), read(options.name, "test")
    found = []
    for seed in range(options.seeds):
        p, seconds, milliseconds, model = measure(
            train, test, n_jobs=options.jobs, random_state=seed, **given
        )
        forest = model.forest_
        found.append(p)
        bound = np.log(forest.n_labels) / np.log(model.arity)
        print(
            f"{options.name} {given} seed {seed}: P@1,3,5 {p[0]:.2f} {p[1]:.2f} {p[2]:.2f}; "
            f"fit {seconds:.1f} s, predict {milliseconds:.3f} ms a row (processor time); "
            f"depth {forest.depth} in [{bound:.1f}, {3 * bound:.1f}]; {forest.n_nodes} nodes; "
            f"model {forest.nbytes / 1e6:.0f} MB, peak {peak_megabytes():.0f} MB",
            flush=True,
        )
    print(options.name, given, "mean", " ".join(f"{x:.2f}" for x in np.mean(found, axis=0)), flush=True)


if __name__ == "__main__":
    main()
