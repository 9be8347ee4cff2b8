"""Figures 1, 3, 4 and 5: precision against trees, and against nodes and depth; J against depth.

python experiments/ldsm/curves.py delicious --trees 20 --out docs/methods/ldsm_delicious.png
"""

from __future__ import annotations

import argparse

import matplotlib as mpl
import numpy as np
from common import measure, read

from labelwood.progress import Run
from labelwood.split_plots import by_level

mpl.use("Agg")


def by_trees(forest, X, Y, counts):
    """Precision at 1, 3, 5 of the first trees, for every count."""
    truth = Y.to_scipy().toarray() > 0
    ptr, nodes = forest.paths(X, Run(n_threads=1))
    leaves = np.searchsorted(forest.leaves, nodes)
    scores, found = np.zeros(truth.shape), []
    for tree in range(forest.n_trees):
        for row in range(X.n_rows):
            begin, end = ptr[row * forest.n_trees + tree], ptr[row * forest.n_trees + tree + 1]
            for leaf in leaves[begin:end]:
                span = slice(forest.leaf_ptr[leaf], forest.leaf_ptr[leaf + 1])
                scores[row, forest.leaf_labels[span]] += forest.leaf_values[span] / (end - begin)
        if tree + 1 in counts:
            best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
            hits = np.take_along_axis(truth, best, axis=1)
            found.append([100 * hits[:, :k].mean() for k in (1, 3, 5)])
    return np.array(found)


def main():
    from matplotlib import pyplot as plt

    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    train, test = read(options.name, "train"), read(options.name, "test")
    _, _, _, model = measure(train, test, n_trees=options.trees, n_jobs=2)
    counts = [n for n in (1, 2, 5, 10, 20, 30, 40, 50) if n <= options.trees]
    trees = by_trees(model.forest_, *test, counts)
    sizes, nodes, depths = (100, 300, 1000, 3000, 8000), [], []
    for size in sizes:
        p, _, _, small = measure(train, test, n_trees=5, max_nodes=size, n_jobs=2)
        nodes.append(p)
        depths.append(small.forest_.depth)
    forest = model.forest_
    J = by_level(forest, model.splits_[:, 0])
    levels = np.arange(len(J))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6))
    for column, k in enumerate((1, 3, 5)):
        left.plot(counts, trees[:, column], marker="o", label=f"P@{k}")
        middle.semilogx(sizes, np.array(nodes)[:, column], marker="o", label=f"P@{k}")
    left.set(xlabel="trees", title=options.name)
    middle.set(xlabel="nodes of a tree (depth of the deepest)", title="5 trees")
    middle.set_xticks(sizes, [f"{s}\n({d})" for s, d in zip(sizes, depths, strict=True)])
    middle.minorticks_off()
    right.fill_between(levels, J[:, 0], J[:, 2], alpha=0.3)
    right.plot(levels, J[:, 1])
    right.set(xlabel="level of the node", title="J of the splits: median, 10% to 90%")
    left.legend()
    figure.tight_layout()
    figure.savefig(options.out, dpi=80)
    for name, keys, table in (("trees", counts, trees), ("nodes", sizes, nodes)):
        for key, row in zip(keys, table, strict=True):
            print(name, key, " ".join(f"{x:.2f}" for x in row))
    print("depths", dict(zip(sizes, depths, strict=True)))


if __name__ == "__main__":
    main()
