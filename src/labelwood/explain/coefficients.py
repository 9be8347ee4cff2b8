"""The weights of a label in label trees: what each feature adds on the way to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelwood.packed.label_tree import LabelledTree
from labelwood.sparse import F64, I32


def coefficients(trees: Sequence[LabelledTree], label: int) -> tuple[I32, F64]:
    """The features of a label, ascending, and their weights: sums over its path, averaged over the trees that have it.

    If labels were merged, several leaves of a tree answer as one label; these are averaged as well.
    """
    columns, weights, n_trees = [np.empty(0, np.int32)], [np.empty(0)], 0
    for packed, leaf_labels in trees:
        tree = packed.tree
        leaves = np.array([label]) if leaf_labels is None else np.flatnonzero(leaf_labels == label)
        nodes = np.flatnonzero(np.isin(tree.label, leaves) & (tree.label >= 0)).tolist()
        n_trees += bool(nodes)
        for leaf in nodes:
            node = leaf
            while node != 0:
                own_columns, own_weights = packed.weights_of(node)
                columns.append(own_columns)
                weights.append(own_weights / len(nodes))
                node = int(tree.parent[node])
    distinct, at = np.unique(np.concatenate(columns), return_inverse=True)
    return distinct, np.bincount(at, np.concatenate(weights), len(distinct)) / max(n_trees, 1)
