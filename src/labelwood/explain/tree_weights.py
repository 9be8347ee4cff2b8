"""Label trees as explanations read them: the shape, and the weights of some nodes for the columns of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.packed.label_tree import LOGISTIC, NodeWeights, PackedTree
from labelwood.packed.tree_shape import LabelTree
from labelwood.sparse import F64, I32


class TreeWeights(Protocol):
    """A label tree; ``label`` is the model's label of each node, -1 for an inner node."""

    @property
    def tree(self) -> LabelTree:
        """The shape."""

    @property
    def label(self) -> I32:
        """The label that each node suggests."""

    @property
    def link(self) -> int:
        """What turns a margin into a probability, as in :class:`PackedTree`."""

    def leaves_of(self, label: int) -> list[int]:
        """The leaves that suggest a label."""

    def of_children(self, nodes: Sequence[int], columns: I32) -> tuple[F64, F64]:
        """The weights [children, ascending columns] and the biases of the children of inner nodes, in turn."""


@dataclass(frozen=True)
class PackedTreeWeights:
    """A packed tree; ``label`` tells the leaves of a frozen tree."""

    packed: PackedTree
    label: I32

    @property
    def tree(self) -> LabelTree:
        """The shape."""
        return self.packed.tree

    @property
    def link(self) -> int:
        """What turns a margin into a probability."""
        return self.packed.link

    def leaves_of(self, label: int) -> list[int]:
        """The leaves that suggest a label."""
        leaves: list[int] = (self.label == label).nonzero()[0].tolist()
        return leaves

    def of_children(self, nodes: Sequence[int], columns: I32) -> tuple[F64, F64]:
        """The weights and the biases of the children of inner nodes."""
        bounds = [(self.tree.child_ptr.item(node), self.tree.child_ptr.item(node + 1)) for node in nodes]
        weights = np.zeros((sum(end - first for first, end in bounds), len(columns)))
        start = 0
        for node, (first, end) in zip(nodes, bounds, strict=True):
            add_weights(self.packed, node, columns, weights[start : start + end - first])
            start += end - first
        bias = self.packed.node_weights.bias
        return weights, np.concatenate([bias[first:end] for first, end in bounds]).astype(np.float64)


@dataclass(frozen=True)
class GrowingTreeWeights:
    """A growing tree, as long as its ``revision`` is that of the shape; node i is node ``order[i]`` of the kernel."""

    growing: _core.OnlineTree
    revision: int
    tree: LabelTree
    label: I32
    order: I32
    link: int = LOGISTIC

    @classmethod
    def of(cls, growing: _core.OnlineTree) -> GrowingTreeWeights:
        """The tree as it is."""
        revision, arrays = growing.revision, growing.shape()
        tree = LabelTree(arrays["child_ptr"], arrays["label"])
        return cls(growing, revision, tree, renamed(tree.label, arrays["leaf_labels"]), arrays["order"])

    def is_of(self, growing: _core.OnlineTree) -> bool:
        """True if this is the present shape of a growing tree."""
        return self.growing is growing and self.revision == growing.revision

    @cached_property
    def _by_label(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        """The nodes in the order of their labels, and the labels in this order."""
        nodes = self.label.argsort(kind="stable")
        return nodes, self.label[nodes].astype(np.int64)

    def leaves_of(self, label: int) -> list[int]:
        """The leaves that suggest a label; searched for, because a tree may have many and is explained often."""
        nodes, labels = self._by_label
        leaves: list[int] = nodes[labels.searchsorted(label) : labels.searchsorted(label + 1)].tolist()
        return leaves

    def of_children(self, nodes: Sequence[int], columns: I32) -> tuple[F64, F64]:
        """The weights and the biases of the children of inner nodes."""
        child_ptr = self.tree.child_ptr
        children = np.concatenate([self.order[child_ptr.item(node) : child_ptr.item(node + 1)] for node in nodes])
        weights, bias = self.growing.weights_of(children, columns)
        return weights.astype(np.float64), bias.astype(np.float64)


def renamed(label: I32, leaf_labels: I32) -> I32:
    """The model's label of each node, -1 for inner nodes; ``label`` numbers the leaves."""
    found, leaves = np.full_like(label, -1), label >= 0
    found[leaves] = leaf_labels[label[leaves]]
    return found


def add_weights(packed: PackedTree, node: int, columns: I32, to: F64) -> None:
    """Write the weights of an inner node for ascending columns into zeros [children, columns]."""
    weights, inner = packed.node_weights, packed.tree.inner_of.item(node)
    first, last = weights.feature_ptr.item(inner), weights.feature_ptr.item(inner + 1)
    if first < last:
        own = weights.features[first:last]
        at = own.searchsorted(columns)
        (known,) = (own.take(at, mode="clip") == columns).nonzero()
        to[:, known] = _rows(weights, inner, at[known], len(to)).T
    n_sparse = packed.n_features - packed.n_columns
    if len(columns) and columns[-1] >= n_sparse:
        (of_vector,) = (columns >= n_sparse).nonzero()
        to[:, of_vector] = weights.vector_block(packed.tree, node)[columns[of_vector] - n_sparse].T


def _rows(weights: NodeWeights, inner: int, positions: npt.NDArray[np.intp], n_children: int) -> npt.NDArray[Any]:
    """The weights of an inner node for some of its features, [features, children]."""
    start, stop = weights.weight_ptr.item(inner), weights.weight_ptr.item(inner + 1)
    if weights.dense:
        return weights.weights[start:stop].reshape(-1, n_children)[positions]
    first, last = weights.feature_ptr.item(inner), weights.feature_ptr.item(inner + 1)
    starts = weights.row_start[first:last]
    begin = starts[positions].astype(np.int64)
    end = np.where(positions + 1 < len(starts), starts.take(positions + 1, mode="clip"), stop - start).astype(np.int64)
    # The weights of the features lie apart: their places are those of each feature, one after the other.
    counts = end - begin
    before = np.cumsum(counts) - counts
    places = np.arange(int(counts.sum())) + np.repeat(begin - before, counts)
    found = np.zeros((len(positions), n_children))
    of_feature = np.repeat(np.arange(len(positions)), counts)
    found[of_feature, weights.child[start:stop][places]] = weights.weights_of(inner)[places]
    return found
