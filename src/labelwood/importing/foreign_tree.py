"""Label trees as other tools describe them, and their packing.

Every reader makes :class:`ForeignTree` values; :func:`assemble` turns them into a fitted :class:`LinearTree` or
:class:`OneVsRest`.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.label_names import LabelNames
from labelwood.methods.label_tree.base import LinearModel
from labelwood.packed.base import pointer_to
from labelwood.packed.label_tree import NodeWeights, PackedTree, child_type
from labelwood.packed.tree_shape import LabelTree, freeze
from labelwood.sparse import HEAVIEST, MAX_COLUMNS

# A score by which every link gives the probability 1.
_CERTAIN = 128.0

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class ForeignTree:
    """A label tree with a linear classifier for every node but the root.

    Node 0 is the root. ``parent[u]`` is the parent of node u, -1 for the root; ``label[u]`` the tool's number of a
    leaf's label, -1 for an inner node. The classifiers are triplets: entry i says that ``node[i]`` gives ``feature[i]``
    the weight ``weight[i]``; ``bias[u]`` is added to the score of node u.
    """

    parent: Numbers
    label: Numbers
    node: Numbers
    feature: Numbers
    weight: Numbers
    bias: Numbers

    def check(self, n_features: int) -> ForeignTree:
        """Assert everything that packing relies on; return self."""
        n_nodes = len(self.parent)
        if not 2 <= n_nodes <= MAX_COLUMNS:
            raise FormatError(f"a tree must have 2 to {MAX_COLUMNS} nodes; it has {n_nodes}")
        if self.parent[0] != -1 or (n_nodes > 1 and not 0 <= self.parent[1:].min() <= self.parent[1:].max() < n_nodes):
            raise FormatError("the tree must have one root, and every other node a parent")
        is_inner = np.zeros(n_nodes, bool)
        is_inner[self.parent[1:]] = True
        if not np.array_equal(is_inner, self.label < 0):
            raise FormatError("a node of the tree must have either children or a label")
        if self.label.max() > MAX_COLUMNS:
            raise FormatError(f"a label number must be at most {MAX_COLUMNS}; got {self.label.max()}")
        for name, numbers, end in (("node", self.node, n_nodes), ("feature", self.feature, n_features)):
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < end:
                raise FormatError(f"a weight belongs to {name} {numbers.max()}, and there are {end}")
        for values in (self.weight, self.bias):
            if len(values) and not -HEAVIEST <= values.min() <= values.max() <= HEAVIEST:  # false for NaN
                raise FormatError(f"weights must be finite and at most {HEAVIEST:g}")
        return self


def with_even_beams(tree: ForeignTree) -> ForeignTree:
    """The tree with all parents of labels on one level, by nodes of one child and of probability 1.

    Some tools keep a shallow node in the beam until the deepest nodes are reached, where it competes with them.
    """
    depth = _depths(tree.parent)
    leaves = np.flatnonzero(tree.label >= 0)
    above = np.unique(tree.parent[leaves])
    missing = depth[above].max() - depth[above]
    if not missing.any():
        return tree
    if missing.sum() > 3 * len(tree.parent) + 1000:
        raise FormatError("the tree is too uneven: its labels lie on levels too far apart")
    last = np.arange(len(tree.parent))  # of the nodes below each node, the one that gets its labels
    parent, label, bias = [tree.parent.copy()], [tree.label], [tree.bias]
    end = len(tree.parent)
    for node, count in zip(above[missing > 0].tolist(), missing[missing > 0].tolist(), strict=True):
        last[node] = end + count - 1
        parent.append(np.array([node, *range(end, end + count - 1)]))
        label.append(np.full(count, -1))
        bias.append(np.full(count, _CERTAIN))
        end += count
    parent[0][leaves] = last[tree.parent[leaves]]
    return replace(tree, parent=np.concatenate(parent), label=np.concatenate(label), bias=np.concatenate(bias))


def _depths(parent: Numbers) -> Numbers:
    """Depth of every node; a node that no path from the root reaches is an error."""
    depth = np.full(len(parent), -1, np.int64)
    frozen = freeze(parent, np.arange(len(parent)))
    if frozen.n_nodes != len(parent):
        raise FormatError("some nodes of the tree cannot be reached from its root")
    for level, (start, stop) in enumerate(zip(frozen.level_ptr[:-1], frozen.level_ptr[1:], strict=True)):
        depth[frozen.label[start:stop]] = level
    return depth


def pack(tree: ForeignTree, ids: Numbers, n_features: int, link: int) -> PackedTree:
    """The tree in the layout of the search; ``ids`` are the tool's label numbers in the order of our ids."""
    order = freeze(tree.parent, np.arange(len(tree.parent)))
    if order.n_nodes != len(tree.parent):
        raise FormatError("some nodes of the tree cannot be reached from its root")
    label = tree.label[order.label]
    leaves = label >= 0
    own = np.full(len(label), -1, np.int32)
    own[leaves] = np.searchsorted(ids, label[leaves])
    shape = LabelTree(order.child_ptr, own).check(len(ids))
    place = np.empty(len(label), np.int64)
    place[order.label] = np.arange(len(label))  # of the tool's nodes among ours
    return PackedTree(shape, _node_weights(tree, shape, place, n_features), link, n_features)


def _node_weights(tree: ForeignTree, shape: LabelTree, place: Numbers, n_features: int) -> NodeWeights:
    kept = np.flatnonzero(tree.weight)
    node = place[tree.node[kept]]
    if len(node) and node.min() == 0:
        raise FormatError("the root of the tree has no classifier")
    parent = shape.parent[node]
    inner = shape.inner_of[parent].astype(np.int64)
    key = inner * n_features + tree.feature[kept]
    sort = np.lexsort((node, key))
    key, inner, node, parent = key[sort], inner[sort], node[sort], parent[sort]
    if len(key) > 1 and np.any((key[1:] == key[:-1]) & (node[1:] == node[:-1])):
        raise FormatError("a classifier gives one feature two weights")
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
    n_inner = len(shape.inner)
    weight_ptr = pointer_to(np.bincount(inner, minlength=n_inner))
    if len(key) and np.diff(weight_ptr).max() >= 2**32:
        raise FormatError("a node of the tree has more than 4,294,967,295 weights")
    bias = np.zeros(shape.n_nodes, np.float32)
    bias[place] = tree.bias
    return NodeWeights(
        feature_ptr=pointer_to(np.bincount(inner[starts], minlength=n_inner)),
        features=(key[starts] - inner[starts] * n_features).astype(np.int32),
        weight_ptr=weight_ptr,
        row_start=(starts - weight_ptr[inner[starts]]).astype(np.uint32),
        child=(node - shape.child_ptr[parent]).astype(child_type(int(np.diff(shape.child_ptr).max()))),
        weights=tree.weight[kept][sort].astype(np.float32),
        bias=bias,
    )


def assemble(
    estimator: LinearModel, trees: Sequence[ForeignTree], n_features: int, link: int, *, source: str
) -> LinearModel:
    """The fitted model of trees over the same labels; ``source`` names the tool that trained them."""
    if not 1 <= n_features <= MAX_COLUMNS:
        raise FormatError(f"the number of features must be 1 to {MAX_COLUMNS}; got {n_features}")
    ids = np.sort(trees[0].check(n_features).label[trees[0].label >= 0])
    if len(np.unique(ids)) != len(ids):
        raise FormatError("a label must be one leaf of the tree")
    for tree in trees[1:]:
        own = tree.check(n_features).label
        if not np.array_equal(np.sort(own[own >= 0]), ids):
            raise FormatError("all trees of the model must have the same labels")
    packed = [pack(tree, ids, n_features, link) for tree in trees]
    named = np.array_equal(ids, np.arange(len(ids)))
    names = LabelNames.columns(len(ids)) if named else LabelNames.of(ids.tolist())
    return estimator.from_trees(packed, names, trained_elsewhere(source))


def trained_elsewhere(source: str) -> dict[str, Any]:
    """What the manifest says about the training of an imported model: the files do not tell the numbers of rows."""
    at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"at": at, "rows": 0, "feature_entries": 0, "label_entries": 0, "imported_from": source}
