"""The words of a node: the features with the largest positive weights by which its parent scores it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.packed.label_tree import PackedTree
from labelwood.packed.routed_forest import RoutedForest

Words = list[list[tuple[int, float]]]  # for each node (feature, weight), largest first

_COLUMNS_AT_ONCE = 256


def label_tree_words(packed: PackedTree, count: int) -> Words:
    """The words of every node of a label tree; the root has none."""
    found: Words = [[] for _ in range(packed.tree.n_nodes)]
    for inner, node in enumerate(packed.tree.inner.tolist()):
        first = int(packed.tree.child_ptr[node])
        n_children = int(packed.tree.child_ptr[node + 1]) - first
        only_vectors = packed.n_columns == packed.n_features
        find = _of_vectors if only_vectors else _dense if packed.node_weights.dense else _sparse
        for child, words in enumerate(find(packed, inner, n_children, count)):
            found[first + child] = words
    return found


def forest_words(forest: RoutedForest, nodes: npt.NDArray[Any], count: int) -> Words:
    """The words of nodes of a forest; none after a projection, whose columns are not features."""
    if forest.routing.projection != "none":
        return [[] for _ in nodes]
    found: Words = []
    for node in nodes.tolist():
        columns, weights = forest.vector(node)
        found.append(_largest(columns, weights.astype(np.float32), count))
    return found


def _largest(columns: npt.NDArray[Any], weights: npt.NDArray[Any], count: int) -> list[tuple[int, float]]:
    order = np.argsort(-weights, kind="stable")[:count]
    return [
        (int(column), float(weight))
        for column, weight in zip(columns[order].tolist(), weights[order].tolist(), strict=True)
        if weight > 0
    ]


def _sparse(packed: PackedTree, inner: int, n_children: int, count: int) -> Words:
    node_weights = packed.node_weights
    first, last = (int(bound) for bound in node_weights.feature_ptr[inner : inner + 2])
    start, stop = (int(bound) for bound in node_weights.weight_ptr[inner : inner + 2])
    bounds = np.append(node_weights.row_start[first:last].astype(np.int64), stop - start)
    columns = np.repeat(node_weights.features[first:last], np.diff(bounds))
    child, weights = node_weights.child[start:stop], node_weights.weights_of(inner).astype(np.float32)
    by_child = np.argsort(child, kind="stable")
    cuts = np.searchsorted(child[by_child], np.arange(n_children + 1))
    return [
        _largest(columns[own], weights[own], count)
        for own in (by_child[cuts[place] : cuts[place + 1]] for place in range(n_children))
    ]


def _dense(packed: PackedTree, inner: int, n_children: int, count: int) -> Words:
    node_weights = packed.node_weights
    first, last = (int(bound) for bound in node_weights.feature_ptr[inner : inner + 2])
    start, stop = (int(bound) for bound in node_weights.weight_ptr[inner : inner + 2])
    block = node_weights.weights[start:stop].reshape(-1, n_children)
    return _of_block(block, node_weights.features[first:last], count)


def _of_vectors(packed: PackedTree, inner: int, n_children: int, count: int) -> Words:
    block = packed.node_weights.vector_block(packed.tree, int(packed.tree.inner[inner]))
    return _of_block(block, np.arange(len(block)), count)


def _of_block(block: npt.NDArray[Any], columns: npt.NDArray[Any], count: int) -> Words:
    n_children = block.shape[1]
    found: Words = []
    for begin in range(0, n_children, _COLUMNS_AT_ONCE):  # a copy with the children's weights side by side
        part = np.ascontiguousarray(block[:, begin : begin + _COLUMNS_AT_ONCE].T)
        found += [_largest(columns, weights, count) for weights in part]
    return found
