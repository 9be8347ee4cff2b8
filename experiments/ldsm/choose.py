"""Parameters of LdsmForest chosen one at a time on a fifth of the training rows held out; the test rows are not read.

python experiments/ldsm/choose.py eurlex57k --trees 5

The first value of every list starts; a later one is kept if it raises the mean of P@1, 3 and 5. Memory rules some
values out beforehand: a forest of 50 trees that would take more than `--megabytes` is not kept.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import measure, read, validation

VALUES = {
    "max_nodes": [8000, 4000, 16000, 32000],
    "weight_threshold": [0.05, 0.03, 0.1, 0.25, 0.5],
    "learning_rate": [0.1, 0.3, 0.5, 1.0],
    "epochs": [5, 10],
    "loss": ["logistic", "squared"],
    "leaf_counts": ["rows", "labels"],
    "idf": [False, True],
    "normalize": [False, True],
    "leaf_size": [100, 50],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--trees", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=2000, help="of a forest of 50 trees")
    parser.add_argument("--order", default=",".join(VALUES), help="parameters in the order to try them")
    options = parser.parse_args()
    fit, held_out = validation(*read(options.name, "train"))
    chosen = {name: values[0] for name, values in VALUES.items()}
    best = -1.0
    print("| change | P@1 | P@3 | P@5 | fit, s | depth | MB of 50 trees |\n|---|---|---|---|---|---|---|")
    for name in options.order.split(","):
        for value in VALUES[name][1:] if best >= 0 else VALUES[name]:
            p, seconds, _, model = measure(
                fit, held_out, n_trees=options.trees, n_jobs=1, **{**chosen, name: value}
            )
            size = model.forest_.nbytes * 50 / options.trees / 1e6
            kept = np.mean(p) > best and size <= options.megabytes
            if kept:
                best, chosen[name] = float(np.mean(p)), value
            scores = " | ".join(f"{x:.2f}" for x in p)
            mark = ", kept" if kept else ""
            print(
                f"| {name}={value}{mark} | {scores} | {seconds:.1f} | {model.forest_.depth} | {size:.0f} |",
                flush=True,
            )
    print(options.name, " ".join(f"{name}={value}" for name, value in chosen.items()))


if __name__ == "__main__":
    main()
