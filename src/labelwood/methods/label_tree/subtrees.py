"""A label tree cut into parts of about equal work.

The parts of a tree are its upper levels and the subtrees below them. A node's classifiers depend on its own rows, its
children and its number alone. So a part is a label tree of its own: the leaves of the upper part are the roots of the
subtrees, and all labels of a subtree count as one there; a subtree sees only the rows that have one of its labels.
``tree_units.py`` makes work units of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from labelwood.packed.tree_shape import LabelTree
from labelwood.sparse import F64, I32, I64

PARTS = 32  # a subtree with more than 1/32 of the work is cut further, if it has inner nodes
LANES = 16  # siblings that the solver trains side by side


@dataclass(frozen=True)
class Part:
    """Some nodes of a tree, as a tree with labels 0, 1, ...; ``ids`` are the nodes' numbers in the whole tree.

    ``costs`` are the estimated costs of its inner nodes.
    """

    tree: LabelTree
    ids: I32
    costs: F64

    @property
    def cost(self) -> float:
        """The cost of all its inner nodes."""
        return float(self.costs.sum())


@dataclass(frozen=True)
class Division:
    """The parts of a tree, the upper part first.

    ``part_of``, ``label_in_part`` and ``label_in_upper`` give each label's part, its label there and its label in the
    upper part. Labels right below the nodes of the upper part have no other part.
    """

    parts: Sequence[Part]
    part_of: I32
    label_in_part: I32
    label_in_upper: I32


def divide(tree: LabelTree, label_counts: I64, n_parts: int = PARTS) -> Division:
    """Cut a tree into parts of about equal work, estimated from the number of rows of each label."""
    cost = _work(tree, label_counts)
    roots = _roots(tree, _summed_up(tree, cost), n_parts)
    part_of_node = np.full(tree.n_nodes, 0, np.int32)
    part_of_node[roots] = 1 + np.arange(len(roots))
    for level in range(1, len(tree.level_ptr) - 1):
        nodes = np.arange(tree.level_ptr[level], tree.level_ptr[level + 1])
        part_of_node[nodes] = np.maximum(part_of_node[nodes], part_of_node[tree.parent[nodes]])
    is_root = np.zeros(tree.n_nodes, bool)
    is_root[roots] = True
    groups = [np.flatnonzero((part_of_node == 0) | is_root)]
    by_part = np.argsort(part_of_node, kind="stable")
    bounds = np.searchsorted(part_of_node[by_part], np.arange(1, len(roots) + 2))
    groups += [by_part[start:stop] for start, stop in pairwise(bounds.tolist())]
    leaf_label = np.zeros(tree.n_nodes, np.int32)  # the label that a leaf has within its part
    parts = []
    for number, nodes in enumerate(groups):
        is_leaf = (tree.label[nodes] >= 0) | (is_root[nodes] if number == 0 else False)
        label = np.full(len(nodes), -1, np.int32)
        label[is_leaf] = np.arange(is_leaf.sum())
        counts = np.where(is_leaf, 0, np.diff(tree.child_ptr)[nodes])
        child_ptr = np.concatenate([[1], 1 + np.cumsum(counts)]).astype(np.int32)
        parts.append(Part(LabelTree(child_ptr, label), nodes.astype(np.int32), cost[nodes[~is_leaf]]))
        if number == 0:
            upper_label = np.zeros(tree.n_nodes, np.int32)
            upper_label[nodes] = label
        leaf_label[nodes] = label
    leaves = np.flatnonzero(tree.label >= 0)
    order = tree.label[leaves]
    part_of, in_part, in_upper = (np.empty(len(leaves), np.int32) for _ in range(3))
    part_of[order] = part_of_node[leaves]
    in_part[order] = leaf_label[leaves]
    tops = np.concatenate([[-1], roots])[part_of_node[leaves]]
    in_upper[order] = upper_label[np.where(tops < 0, leaves, tops)]
    return Division(parts, part_of, in_part, in_upper)


def _work(tree: LabelTree, label_counts: I64) -> F64:
    """The estimated work of training each node: the rows of its labels times the blocks of its children."""
    rows = np.zeros(tree.n_nodes)
    leaves = tree.label >= 0
    rows[leaves] = label_counts[tree.label[leaves]]
    work: F64 = (_summed_up(tree, rows) + 1) * -(-np.diff(tree.child_ptr) // LANES)
    return work


def _summed_up(tree: LabelTree, values: F64) -> F64:
    """For every node, the sum over itself and all nodes below it."""
    sums = values.copy()
    for first, last in reversed(list(pairwise(tree.level_ptr[1:].tolist()))):
        np.add.at(sums, tree.parent[first:last], sums[first:last])
    return sums


def _roots(tree: LabelTree, below: F64, n_parts: int) -> I64:
    """Roots of the subtrees: inner nodes as high as their work allows."""
    roots, pending = [], [0]
    while pending:
        node = pending.pop()
        children = np.arange(tree.child_ptr[node], tree.child_ptr[node + 1])
        inner = children[tree.label[children] < 0].tolist()
        if node == 0 or (below[node] > below[0] / n_parts and inner):
            pending += inner
        else:
            roots.append(node)
    return np.array(sorted(roots), np.int64)
