"""What each reading of the paper's silent points gives, on a fifth of the training rows held out; all weights kept.

python experiments/ldsm/readings.py bibtex --trees 12
"""

from __future__ import annotations

import argparse

from common import measure, read, validation

READINGS = [
    {},
    {"lambda_integrity": 1.0},
    {"lambda_integrity": 4.0},
    {"lambda_multiway": 0.5},
    {"lambda_multiway": 2.0},
    {"lambda_integrity": 4.0, "lambda_multiway": 4.0},
    {"loss": "squared"},
    {"loss": "squared", "normalize": True, "lambda_integrity": 1.0},
    {"normalize": True},
    {"leaf_counts": "labels"},
    {"shuffle": "tree"},
    {"optimizer": "adagrad"},
    {"optimizer": "sgd"},
    {"learning_rate": 0.03},
    {"learning_rate": 0.3},
    {"epochs": 5},
    {"epochs": 20},
    {"arity": 4},
    {"arity": 4, "lambda_multiway": 2.0},
    {"max_nodes": 1000},
    {"max_nodes": 32000},
    {"weight_threshold": 0.03},
    {"weight_threshold": 0.05},
    {"weight_threshold": 0.1},
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--trees", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of the first reading")
    options = parser.parse_args()
    train, test = validation(*read(options.name, "train"))
    print("| reading | P@1 | P@3 | P@5 | fit, s | depth | nodes a tree |\n|---|---|---|---|---|---|---|")
    for reading in READINGS[options.first :]:
        whole = {"weight_threshold": 0.0, **reading}
        p, seconds, _, model = measure(train, test, n_trees=options.trees, n_jobs=1, **whole)
        named = ", ".join(f"{k}={v}" for k, v in reading.items()) or "default"
        scores = " | ".join(f"{x:.2f}" for x in p)
        nodes = model.forest_.n_nodes // options.trees
        print(f"| {named} | {scores} | {seconds:.1f} | {model.forest_.depth} | {nodes} |", flush=True)


if __name__ == "__main__":
    main()
