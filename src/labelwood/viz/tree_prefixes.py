"""Predictions of the first trees of a model, for a growing number of trees, without training again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
        yield from _of_forest(trees, X, k, run)
        return
    members = model.topk_by_tree(X, k, run)
    sizes = np.cumsum([tree.packed.tree.n_nodes for tree in trees])
    for count in _counts(len(members)):
        yield count, int(sizes[count - 1]), average(members[:count], k)


def _counts(n_trees: int) -> list[int]:
    return [count for count in _COUNTS if count < n_trees] + [n_trees]


def _of_forest(forest: RoutedForest, X: CSR, k: int, run: RunContext) -> Iterator[tuple[int, int, TopK]]:
    import scipy.sparse as sp  # noqa: PLC0415 - as everywhere, only where it is needed

    ptr, nodes = forest.paths(X, run)
    leaves = np.searchsorted(forest.leaves, nodes)
    shares = sp.csr_array(
        (forest.leaf_values.astype(np.float32), forest.leaf_labels.astype(np.int64), forest.leaf_ptr),
        shape=(len(forest.leaves), forest.n_labels),
    )
    sizes = np.cumsum(_tree_sizes(forest))
    total = sp.csr_array((X.n_rows, forest.n_labels), dtype=np.float32)
    for tree in range(forest.n_trees):
        starts = ptr[tree :: forest.n_trees][: X.n_rows]
        counts = ptr[tree + 1 :: forest.n_trees][: X.n_rows] - starts
        rows = np.repeat(np.arange(X.n_rows), counts)
        reached = leaves[np.repeat(starts - np.append(0, np.cumsum(counts)[:-1]), counts) + np.arange(len(rows))]
        weight = (1 / np.maximum(counts, 1)).astype(np.float32)[rows]
        total = total + sp.csr_array((weight, (rows, reached)), shape=(X.n_rows, len(forest.leaves))) @ shares
        if tree + 1 in _counts(forest.n_trees):
            yield tree + 1, int(sizes[tree]), _best(total / np.float32(tree + 1), k)


def _tree_sizes(forest: RoutedForest) -> list[int]:
    root = np.arange(forest.n_nodes)
    for node in range(forest.n_trees, forest.n_nodes):  # parents come first
        root[node] = root[forest.parent[node]]
    return [int(count) for count in np.bincount(root, minlength=forest.n_trees)]


def _best(scores: Any, k: int) -> TopK:
    """The k largest entries of each row of a scipy matrix, equal ones by label."""
    labels, values = np.full((scores.shape[0], k), -1, np.int32), np.zeros((scores.shape[0], k), np.float32)
    for row in range(scores.shape[0]):
        span = slice(scores.indptr[row], scores.indptr[row + 1])
        ids, own = scores.indices[span], scores.data[span]
        order = np.lexsort((ids, -own))[:k]
        order = order[own[order] > 0]
        labels[row, : len(order)], values[row, : len(order)] = ids[order], own[order]
    return TopK(labels, values)
