"""Predictions of the first trees of a model, for a growing number of trees, without training again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelwood.estimator import FittedModel
from labelwood.packed.label_tree import average
from labelwood.packed.routed_forest import RoutedForest
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, TopK

_COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)


def prefixes(model: FittedModel, X: CSR, k: int) -> Iterator[tuple[int, int, TopK]]:
    """Number of trees, number of their nodes and their top k, for growing numbers of trees up to all."""
    run, k = RunContext(n_threads=model.n_threads), min(k, model.n_labels_)
    trees = model.trees()
    if isinstance(trees, RoutedForest):
        for count in _counts(trees.n_trees):
            first = trees.first_trees(count)
            yield count, first.n_nodes, first.topk(X, k, run)
        return
    members = model.topk_by_tree(X, k, run)
    sizes = np.cumsum([tree.packed.tree.n_nodes for tree in trees])
    for count in _counts(len(members)):
        yield count, int(sizes[count - 1]), average(members[:count], k)


def _counts(n_trees: int) -> list[int]:
    return [count for count in _COUNTS if count < n_trees] + [n_trees]
