"""Leaves and rows of a node in binary trees with n_leaf = 10: l_T and the mean of n_v, as the paper observed them.

    python -m experiments.craftml.tree_shape

As printed, but for two children a node. The paper: l_T is n over 2.83 ± 0.41, and the mean of n_v is 24.32 ± 2.61, over
its data sets; nodes are inner nodes, of which a binary tree has l_T - 1 (Propositions 1 and 2).
"""

from __future__ import annotations

import numpy as np

from experiments.common import Split, parse, repeated
from experiments.report import Report
from labelwood import CraftForest
from tests.reference.routed_forest import rows_of_nodes


def shape(split: Split, seed: int, n_trees: int) -> dict[str, float]:
    """Means over the trees of a forest."""
    model = CraftForest(**{**CraftForest.PRESETS["paper"], "arity": 2, "n_trees": n_trees}, n_jobs=1, random_state=seed)
    forest = model.fit(split.train.X, split.train.Y.to_scipy()).forest_
    passed = rows_of_nodes(forest, split.train.X)
    is_inner = np.diff(forest.child_ptr) > 0
    n_leaves = float((~is_inner).sum()) / n_trees
    return {
        "n / l_T": split.train.n_rows / n_leaves,
        "mean n_v of inner nodes": float(passed[is_inner].mean()),
        "mean n_v of all nodes": float(passed.mean()),
        "inner nodes - (l_T - 1)": float(is_inner.sum()) / n_trees - (n_leaves - 1),
    }


def main() -> None:
    """Grow a few trees on every set and write the table."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"))
    report = Report("craftml", "tree_shape", "CRAFTML, Proposition 1: leaves, and rows of a node", options)
    report.notes.append("The paper, over its data sets: n / l_T 2.83 ± 0.41, mean n_v 24.32 ± 2.61.")
    rows = []
    for name in options.sets:
        split, n_trees = options.load(name), options.trees(5)
        rows.append({"data": split.title, **repeated(options.seeds, lambda s, p=split, n=n_trees: shape(p, s, n))})
    report.table("Binary trees, n_leaf = 10", rows)
    report.write()


if __name__ == "__main__":
    main()
