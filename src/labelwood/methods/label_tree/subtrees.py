"""Training the classifiers of a label tree in parts, as work units.

The parts of a tree are its upper levels and the subtrees below them. A node's classifiers depend on its own rows, its
children and its number alone. So a part is a label tree of its own: the leaves of the upper part are the roots of the
subtrees, and all labels of a subtree count as one there; a subtree sees only the rows that have one of its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.executors.work_unit import Unit, complete
from labelwood.methods.label_tree.training_rows import train_part
from labelwood.packed.tree_shape import LabelTree
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F64, I32, I64, Arrays

_PARTS = 32  # a subtree with more than 1/32 of the work is cut further, if it has inner nodes
_LANES = 16  # siblings that the solver trains side by side


@dataclass(frozen=True)
class Part:
    """Some nodes of a tree, as a tree with labels 0, 1, ...; ``ids`` are the nodes' numbers in the whole tree."""

    tree: LabelTree
    ids: I32
    cost: float


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


def divide(tree: LabelTree, label_counts: I64) -> Division:
    """Cut a tree into parts of about equal work, estimated from the number of rows of each label."""
    cost = _work(tree, label_counts)
    roots = _roots(tree, _summed_up(tree, cost))
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
        own_cost = float(cost[nodes[~is_leaf]].sum())
        parts.append(Part(LabelTree(child_ptr, label), nodes.astype(np.int32), own_cost))
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
    work: F64 = (_summed_up(tree, rows) + 1) * -(-np.diff(tree.child_ptr) // _LANES)
    return work


def _summed_up(tree: LabelTree, values: F64) -> F64:
    """For every node, the sum over itself and all nodes below it."""
    sums = values.copy()
    for first, last in reversed(list(pairwise(tree.level_ptr[1:].tolist()))):
        np.add.at(sums, tree.parent[first:last], sums[first:last])
    return sums


def _roots(tree: LabelTree, below: F64) -> I64:
    """Roots of the subtrees: inner nodes as high as their work allows."""
    roots, pending = [], [0]
    while pending:
        node = pending.pop()
        children = np.arange(tree.child_ptr[node], tree.child_ptr[node + 1])
        inner = children[tree.label[children] < 0].tolist()
        if node == 0 or (below[node] > below[0] / _PARTS and inner):
            pending += inner
        else:
            roots.append(node)
    return np.array(sorted(roots), np.int64)


def train_divided(
    trees: Sequence[LabelTree], settings: Sequence[Mapping[str, Any]], shared: Arrays, Y: CSR, run: RunContext
) -> list[dict[str, npt.NDArray[Any]]]:
    """The weights of trees, whose parts are trained as work units."""
    counts = np.bincount(Y.indices, minlength=Y.n_cols)
    divisions = [divide(tree, counts) for tree in trees]
    parts = [
        units(division, Y, f"tree{number}", setting)
        for number, (division, setting) in enumerate(zip(divisions, settings, strict=True))
    ]
    results = complete("train", [unit for of_tree in parts for unit in of_tree], shared, run)
    joined = []
    for tree, division in zip(trees, divisions, strict=True):
        own, results = results[: len(division.parts)], results[len(division.parts) :]
        joined.append(join(tree, division, own))
    return joined


def units(division: Division, Y: CSR, name: str, setting: Mapping[str, Any]) -> list[Unit]:
    """The units that train the parts of a tree."""
    rows = np.repeat(np.arange(Y.n_rows, dtype=np.int32), np.diff(Y.indptr))
    entry_part = division.part_of[Y.indices]
    by_part = np.argsort(entry_part, kind="stable")
    bounds = np.searchsorted(entry_part[by_part], np.arange(1, len(division.parts) + 1))
    found = []
    for number, part in enumerate(division.parts):
        own: dict[str, npt.NDArray[Any]] = {
            "child_ptr": part.tree.child_ptr, "label": part.tree.label, "ids": part.ids,
        }  # fmt: skip
        if number == 0:
            own |= {"y_indptr": Y.indptr, "y_indices": division.label_in_upper[Y.indices]}
        else:
            entries = by_part[bounds[number - 1] : bounds[number]]
            member = rows[entries]
            first = np.flatnonzero(np.diff(member, prepend=-1))
            own |= {
                "rows": member[first],
                "y_indptr": np.append(first, len(member)).astype(np.int64),
                "y_indices": division.label_in_part[Y.indices[entries]],
            }
        n_labels = int((part.tree.label >= 0).sum())
        found.append(Unit(f"{name}.part{number}", train_part, own, {**setting, "n_labels": n_labels}, part.cost))
    return found


def join(
    tree: LabelTree, division: Division, results: Sequence[dict[str, npt.NDArray[Any]]]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the whole tree from those of its parts, which are removed: only one array is there twice."""
    owner, place = np.zeros((2, tree.n_nodes), np.int64)
    bias = np.zeros(tree.n_nodes, np.float32)
    for number, (part, found) in enumerate(zip(division.parts, results, strict=True)):
        inner = part.tree.inner
        owner[part.ids[inner]], place[part.ids[inner]] = number, np.arange(len(inner))
        bias[part.ids[1:]] = found["bias"][1:]
    where = list(zip(owner[tree.inner].tolist(), place[tree.inner].tolist(), strict=True))
    moved = sum(int(found["weight_bytes"]) for found in results)
    joined: dict[str, npt.NDArray[Any]] = {"bias": bias, "weight_bytes": np.array(moved)}
    for pointer, names in (("feature_ptr", ("features", "row_start")), ("weight_ptr", ("child", "weights"))):
        bounds = [result[pointer].tolist() for result in results]
        counts = [bounds[number][at + 1] - bounds[number][at] for number, at in where]
        joined[pointer] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        for name in names:
            sources = [result.pop(name) for result in results]
            pieces = [
                sources[number][bounds[number][at] : bounds[number][at + 1]]
                for number, at in where
                if len(sources[number])
            ]
            joined[name] = np.concatenate(pieces) if pieces else sources[0][:0]
            del sources, pieces
    if len(results[0]["scale"]):
        scales = [result["scale"].tolist() for result in results]
        joined["scale"] = np.array([scales[number][at] for number, at in where], np.float32)
    joined["vector_weights"] = np.concatenate(
        [_vector_block(division.parts[number].tree, results[number]["vector_weights"], at) for number, at in where]
    )
    return joined


def _vector_block(tree: LabelTree, weights: npt.NDArray[Any], inner: int) -> npt.NDArray[Any]:
    """The weights of an inner node for the dense columns of rows."""
    node, n_columns = tree.inner[inner], len(weights) // (tree.n_nodes - 1)
    first, last = tree.child_ptr[node : node + 2].astype(np.int64) - 1
    return weights[first * n_columns : last * n_columns]
