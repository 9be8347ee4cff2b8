"""Packed label trees: weights laid out by node, and the search over them.

A :class:`PackedTree` is the fitted state of a label-tree method: the tree, and per inner node the features it uses
(stored once) with the weights of its children side by side. There are two layouts of the same arrays:

- dense: every weight kept, a block [used features x children] of float32 per node;
- sparse: after a threshold, per feature the remaining (child, weight) pairs, in float16 by default. Weights in int8
  are multiples of one number per node.

The dense columns of hybrid rows have a block of weights of their own in every node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.packed.base import PicklesFieldsOnly, check_pointer, require
from labelwood.packed.tree_shape import LabelTree
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F32, F64, HEAVIEST, I32, I64, TopK, are_light

_OWNER = "NodeWeights"
_require = partial(require, _OWNER)
_OPTIONAL = ("scale", "vector_weights", "vector_scale")  # arrays that are not saved if they are empty
_FAULTS = (
    "",
    "features must be columns of the rows",
    "the features of a node must be sorted and distinct",
    "row_start must never fall within a node",
    "row_start must stay within its node",
    "child must be a child of its node",
)
_CHILD_TYPES: tuple[type[np.integer[Any]], ...] = (np.uint8, np.uint16, np.int32)


@dataclass(frozen=True)
class NodeWeights:
    """The weights of a label tree, inner nodes in id order.

    Inner node ``i`` uses ``features[feature_ptr[i]:feature_ptr[i + 1]]``, ascending. Its weights start at
    ``weight_ptr[i]``. Dense: ``row_start`` and ``child`` are empty and feature ``j`` of the node owns the next
    ``n_children`` weights. Sparse: feature ``j``'s pairs start at ``row_start[j]`` (relative to the node) and
    end where the next feature's start; ``child`` counts from the node's first child. ``bias`` is per tree node.
    ``scale`` is empty unless the weights are int8; then node ``i``'s are multiples of ``scale[i]``.

    ``vector_weights`` holds, for each inner node in order, a block [dense columns x children]. The children of all
    inner nodes are all nodes but the root, so the block of a node with first child c starts at (c - 1) times the
    number of dense columns. ``vector_scale`` is to them what ``scale`` is to ``weights``.
    """

    feature_ptr: I64
    features: I32
    weight_ptr: I64
    row_start: npt.NDArray[np.uint32]
    child: npt.NDArray[Any]
    weights: npt.NDArray[Any]
    bias: F32
    scale: F32 = field(default_factory=lambda: np.empty(0, np.float32))
    vector_weights: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, np.float32))
    vector_scale: F32 = field(default_factory=lambda: np.empty(0, np.float32))

    @property
    def n_columns(self) -> int:
        """Dense columns that have weights."""
        return len(self.vector_weights) // max(len(self.bias) - 1, 1)

    @property
    def dense(self) -> bool:
        """True if every weight is kept."""
        return len(self.row_start) == 0 and len(self.child) == 0

    @property
    def stored_as(self) -> np.dtype[Any]:
        """The number format of the weights."""
        return self.weights.dtype if len(self.weights) or self.n_columns == 0 else self.vector_weights.dtype

    @property
    def n_weights(self) -> int:
        """Number of weights that are not zero, without biases."""
        of_vectors = int(np.count_nonzero(self.vector_weights))
        return of_vectors + (int(np.count_nonzero(self.weights)) if self.dense else len(self.weights))

    def vector_block(self, tree: LabelTree, node: int) -> F32:
        """The weights of the dense columns in an inner node, [columns, children], scaled if they are stored as int8."""
        first, last = (int(bound) - 1 for bound in tree.child_ptr[node : node + 2])
        own = self.vector_weights[first * self.n_columns : last * self.n_columns].reshape(-1, last - first)
        wide: F32 = own.astype(np.float32)
        return wide * self.vector_scale[tree.inner_of[node]] if len(self.vector_scale) else wide

    def weights_of(self, inner: int) -> npt.NDArray[Any]:
        """The weights of an inner node, scaled if they are stored as int8."""
        own = self.weights[self.weight_ptr[inner] : self.weight_ptr[inner + 1]]
        return own if len(self.scale) == 0 else own * self.scale[inner]

    def check(self, tree: LabelTree, n_features: int) -> NodeWeights:
        """Assert every invariant that the search relies on; return self."""
        wanted = {"feature_ptr": np.int64, "features": np.int32, "weight_ptr": np.int64, "row_start": np.uint32}
        for name, dtype in {**wanted, "bias": np.float32, "scale": np.float32, "vector_scale": np.float32}.items():
            _require(getattr(self, name).dtype == dtype, f"{name} must be {np.dtype(dtype)}")
        _require(self.child.dtype in _CHILD_TYPES, "child must be uint8, uint16 or int32")
        flat = all(getattr(self, part.name).ndim == 1 for part in fields(self))
        _require(flat, "arrays must be one-dimensional")
        n_inner, n_children = len(tree.inner), np.diff(tree.child_ptr)[tree.inner]
        _require(len(self.bias) == tree.n_nodes, "bias must have one value per node")
        check_pointer(_OWNER, "feature_ptr", self.feature_ptr, n_inner, len(self.features))
        check_pointer(_OWNER, "weight_ptr", self.weight_ptr, n_inner, len(self.weights))
        per_node = np.diff(self.feature_ptr)
        self._check_vectors(tree, n_inner)
        n_sparse = n_features - self.n_columns
        _require(n_sparse >= 0, "vector_weights must have at most as many columns as the model has features")
        if self.dense:
            _require(self.weights.dtype == np.float32, "weights must be float32")
            _require(np.array_equal(np.diff(self.weight_ptr), per_node * n_children), "weight_ptr does not fit")
        else:
            known = self.weights.dtype in (np.int8, np.float16, np.float32)
            _require(known, "weights must be int8, float16 or float32")
            _require(len(self.row_start) == len(self.features), "row_start must have one entry per feature")
            _require(len(self.child) == len(self.weights), "child and weights must have the same length")
        self._check_nodes(n_children, n_sparse)
        n_scales = n_inner if self.weights.dtype == np.int8 else 0
        _require(self.scale.shape == (n_scales,), "scale must have one value per inner node for int8, else none")
        light = all(are_light(array) for array in (self.bias, self.weights, self.scale, *self._of_vectors()))
        _require(light, f"weights must be finite and at most {HEAVIEST:g}")
        return self

    def _of_vectors(self) -> tuple[npt.NDArray[Any], F32]:
        return self.vector_weights, self.vector_scale

    def _check_vectors(self, tree: LabelTree, n_inner: int) -> None:
        known = self.vector_weights.dtype in (np.int8, np.float16, np.float32)
        _require(known, "vector_weights must be int8, float16 or float32")
        whole = len(self.vector_weights) == self.n_columns * (tree.n_nodes - 1)
        _require(whole, "vector_weights must have one value per dense column and child")
        n_scales = n_inner if self.vector_weights.dtype == np.int8 else 0
        _require(
            len(self.vector_scale) == n_scales, "vector_scale must have one value per inner node for int8, else none"
        )

    def _check_nodes(self, n_children: npt.NDArray[Any], n_features: int) -> None:
        names = ("feature_ptr", "features", "weight_ptr", "row_start", "child")
        own = {"n_children": n_children.astype(np.int32), "n_features": n_features}
        fault = _core.check_nodes({**{name: getattr(self, name) for name in names}, **own})
        _require(fault == 0, _FAULTS[fault])


def child_type(widest: int) -> type[np.integer[Any]]:
    """The smallest integer type for the numbers of this many children."""
    return next(t for t in _CHILD_TYPES if widest - 1 <= np.iinfo(t).max)


def narrow(arrays: Mapping[str, npt.NDArray[Any]], tree: LabelTree, weight_dtype: str) -> NodeWeights:
    """The weights from a training kernel's arrays, in the smallest types that hold them."""
    widest = int(np.diff(tree.child_ptr).max(initial=0))
    sparse = len(arrays["row_start"]) > 0
    return NodeWeights(
        **{
            **arrays,
            "child": arrays["child"].astype(child_type(widest), copy=False),
            "weights": arrays["weights"].astype(weight_dtype, copy=False) if sparse else arrays["weights"],
            **({} if sparse else {"scale": np.empty(0, np.float32)}),
        }
    )


LOGISTIC = 0


@dataclass(frozen=True)
class PackedTree(PicklesFieldsOnly):
    """A label tree with its weights; ``link`` turns a margin into a probability.

    ``LOGISTIC``: the sigmoid. A number p: ``exp(-max(0, 1 - margin)^p)``, which is 1 where a hinge loss is 0.
    A label's score is the product along its path.
    """

    tree: LabelTree
    node_weights: NodeWeights
    link: int
    n_features: int

    @property
    def n_columns(self) -> int:
        """Dense columns of the rows; the last of the features."""
        return self.node_weights.n_columns

    @cached_property
    def _searcher(self) -> _core.TreeSearcher:
        c = self.node_weights
        # NumPy's float16 is a plain 16-bit number to the kernel.
        weights = c.weights.view(np.uint16) if c.weights.dtype == np.float16 else c.weights
        arrays = {part.name: getattr(c, part.name) for part in fields(NodeWeights)}
        shape = {name: getattr(self.tree, name) for name in ("child_ptr", "label", "inner_of")}
        own = {"weights": weights, "link": self.link, "n_features": self.n_features - self.n_columns}
        own["n_columns"] = self.n_columns
        return _core.TreeSearcher({**shape, **arrays, **own})

    def topk(
        self,
        X: CSR,
        k: int,
        *,
        beam_width: int,
        exact: bool,
        run: RunContext,
        allowed: I32 | None = None,
        per_node: int = 0,
    ) -> TopK:
        """The k best labels of each row by beam search, or exactly by uniform-cost search.

        With ``allowed``, the labels of the only leaves to search, the search is exact in any case. A node of a beam
        proposes its ``per_node`` best labels, or all if that is 0.
        """
        # A beam allocates its width for every row, and no level is wider than all nodes.
        width = min(beam_width, len(self.tree.label))
        with run.phase("search", X.nnz) as progress:
            labels, scores = self._searcher.search(
                X, k, width, exact, run.n_threads, progress, allowed, per_node, vector_scale=X.vector_factors
            )
        return TopK(labels, scores)

    def weights_of(self, child: int) -> tuple[I32, F64]:
        """The features by which the parent of a node scores it, and their weights."""
        parent, own = int(self.tree.parent[child]), self.node_weights
        first_child, last_child = (int(bound) for bound in self.tree.child_ptr[parent : parent + 2])
        inner, place = int(self.tree.inner_of[parent]), child - first_child
        features = own.features[own.feature_ptr[inner] : own.feature_ptr[inner + 1]]
        weights = own.weights_of(inner)
        if own.dense:
            found = weights.reshape(-1, last_child - first_child)[:, place]
        else:
            start = int(own.weight_ptr[inner])
            pairs = np.flatnonzero(own.child[start : start + len(weights)] == place)
            starts = own.row_start[own.feature_ptr[inner] : own.feature_ptr[inner + 1]]
            features, found = features[np.searchsorted(starts, pairs, side="right") - 1], weights[pairs]
        columns = np.arange(self.n_features - self.n_columns, self.n_features, dtype=np.int32)
        of_vectors = own.vector_block(self.tree, parent)[:, place]
        return np.concatenate([features, columns]), np.concatenate([found, of_vectors]).astype(np.float64)

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays to save, under names that start with ``prefix``."""
        own = {part.name: getattr(self.node_weights, part.name) for part in fields(NodeWeights)}
        own = {name: array for name, array in own.items() if len(array) or name not in _OPTIONAL}
        own |= {"child_ptr": self.tree.child_ptr, "label": self.tree.label}
        return {prefix + name: array for name, array in own.items()}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], prefix: str, link: int, n_labels: int, n_features: int
    ) -> PackedTree:
        """The inverse of :meth:`arrays`; checks every invariant."""
        tree = LabelTree(arrays[prefix + "child_ptr"], arrays[prefix + "label"])
        for array in (tree.child_ptr, tree.label):
            _require(array.dtype == np.int32 and array.ndim == 1, "a tree's arrays must be int32")
        tree.check(n_labels)
        names = [
            part.name for part in fields(NodeWeights) if part.name not in _OPTIONAL or prefix + part.name in arrays
        ]
        node_weights = NodeWeights(**{name: arrays[prefix + name] for name in names})
        return cls(tree, node_weights.check(tree, n_features), link, n_features)


class LabelledTree(NamedTuple):
    """A packed tree of a model: leaf j stands for the model's label ``leaf_labels[j]``, or j itself if None."""

    packed: PackedTree
    leaf_labels: I32 | None = None


def average(members: Sequence[TopK], k: int) -> TopK:
    """The average of several top-k lists per row; a label that a list lacks counts as 0 there."""
    if not members:
        raise LabelwoodError("average: at least one member is needed")
    if len(members) == 1:
        return TopK(np.ascontiguousarray(members[0].labels[:, :k]), np.ascontiguousarray(members[0].scores[:, :k]))
    labels, scores = (np.stack(arrays) for arrays in zip(*members, strict=True))
    return TopK(*_core.average_topk(labels, scores, k))
