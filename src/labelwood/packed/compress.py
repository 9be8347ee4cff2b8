"""Packed label trees made smaller on request: small weights dropped, the others stored in fewer bits.

The loss of precision depends on the data: ``labelwood shrink`` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.packed.base import pointer_to
from labelwood.packed.label_tree import NodeWeights, PackedTree, child_type, narrow
from labelwood.packed.tree_shape import LabelTree
from labelwood.sparse import F32, I64

_STEPS = 127  # largest int8
_BISECTIONS = 60
_NONE = np.empty(0, np.float32)


def prune(packed: PackedTree, threshold: float) -> PackedTree:
    """The tree without the weights of at most this size, and without features that have no weight left.

    The weights of dense columns stay: without some of them, a block would not be smaller.
    """
    node_weights, tree = packed.node_weights, packed.tree
    if node_weights.dense:
        node_weights = _sparse(node_weights, tree, threshold)
    else:
        node_weights = _select(node_weights, sizes_of(node_weights) > threshold)
    return replace(packed, node_weights=node_weights)


def quantize(packed: PackedTree, dtype: str) -> PackedTree:
    """The tree with weights of this type; dense blocks lose the weights that are 0.

    ``int8``: a node's weights become whole multiples of 1/127 of its largest; weights that round to 0 are dropped.
    """
    node_weights, tree = packed.node_weights, packed.tree
    if node_weights.dense:
        node_weights = _sparse(node_weights, tree, 0.0)
    if dtype == "int8":
        return vectors_to_int8(replace(packed, node_weights=_to_int8(node_weights)))
    weights, of_vectors = _plain(node_weights), _plain_vectors(node_weights, tree)
    for own in (weights, of_vectors):
        if len(own) and np.abs(own).max() > np.finfo(dtype).max:
            raise LabelwoodError(f"quantize: a weight of {np.abs(own).max():g} does not fit {dtype}")
    plain = {"weights": weights.astype(dtype), "scale": _NONE}
    plain |= {"vector_weights": of_vectors.astype(dtype), "vector_scale": _NONE}
    return replace(packed, node_weights=replace(node_weights, **plain))


def vectors_to_int8(packed: PackedTree) -> PackedTree:
    """The tree with the weights of dense columns as int8; the others stay as they are."""
    node_weights, tree = packed.node_weights, packed.tree
    of_vectors = _plain_vectors(node_weights, tree)
    steps, scale = _steps(of_vectors, _vector_ptr(node_weights, tree)) if len(of_vectors) else (of_vectors, _NONE)
    return replace(packed, node_weights=replace(node_weights, vector_weights=steps, vector_scale=scale))


def threshold_for(trees: Sequence[PackedTree], target: int) -> float:
    """The smallest threshold, to one part in 2^60, at which the trees' arrays take at most ``target`` bytes."""
    parts = [_Sizes.of(packed) for packed in trees]
    low, high = 0.0, max((float(part.weights.max(initial=0.0)) for part in parts), default=0.0)
    least = sum(part.bytes_above(high) for part in parts)
    if least > target:
        raise LabelwoodError(
            f"prune: target_size must be at least the {least} bytes that remain without any weight; got {target}"
        )
    if sum(part.bytes_above(low) for part in parts) <= target:
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if sum(part.bytes_above(middle) for part in parts) <= target:
            high = middle
        else:
            low = middle
    return high


class _Sizes:
    """The sizes of a tree's weights and the largest of each feature, to count what a threshold leaves."""

    def __init__(self, weights: F32, largest: F32, per_weight: int, fixed: int) -> None:
        self.weights, self._largest, self._per_weight, self._fixed = weights, largest, per_weight, fixed

    @classmethod
    def of(cls, packed: PackedTree) -> _Sizes:
        """The sizes of a tree, in the layout that it has after pruning."""
        node_weights, tree = packed.node_weights, packed.tree
        weights, starts = sizes_of(node_weights), _row_starts(node_weights, tree)
        largest = np.maximum.reduceat(weights, starts) if len(starts) else np.empty(0, np.float32)
        widest = int(np.diff(tree.child_ptr).max(initial=1))
        child = np.dtype(child_type(widest)) if node_weights.dense else node_weights.child
        own = (node_weights.bias, node_weights.feature_ptr, node_weights.weight_ptr, node_weights.scale)
        of_vectors = (node_weights.vector_weights, node_weights.vector_scale)
        fixed = sum(array.nbytes for array in (tree.child_ptr, tree.label, *own, *of_vectors))
        return cls(weights, largest, child.itemsize + node_weights.weights.itemsize, fixed)

    def bytes_above(self, threshold: float) -> int:
        """Bytes of all arrays without the weights of at most this size."""
        kept, rows = np.count_nonzero(self.weights > threshold), np.count_nonzero(self._largest > threshold)
        return int(kept) * self._per_weight + int(rows) * 8 + self._fixed


def sizes_of(node_weights: NodeWeights) -> F32:
    """The absolute values of all weights."""
    sizes: F32 = np.abs(_plain(node_weights))
    return sizes


def _plain(node_weights: NodeWeights) -> F32:
    """All weights as float32."""
    weights = node_weights.weights.astype(np.float32)
    if len(node_weights.scale):
        weights *= np.repeat(node_weights.scale, np.diff(node_weights.weight_ptr))
    return weights


def _vector_ptr(node_weights: NodeWeights, tree: LabelTree) -> I64:
    """Where the weights for dense columns of each inner node start, and the end."""
    return pointer_to(np.diff(tree.child_ptr)[tree.inner].astype(np.int64) * node_weights.n_columns)


def _plain_vectors(node_weights: NodeWeights, tree: LabelTree) -> F32:
    """All weights for dense columns as float32."""
    weights = node_weights.vector_weights.astype(np.float32)
    if len(node_weights.vector_scale):
        weights *= np.repeat(node_weights.vector_scale, np.diff(_vector_ptr(node_weights, tree)))
    return weights


def _row_starts(node_weights: NodeWeights, tree: LabelTree) -> I64:
    """The index of each feature's first weight."""
    owner = np.repeat(np.arange(len(tree.inner)), np.diff(node_weights.feature_ptr))
    if not node_weights.dense:
        return node_weights.row_start.astype(np.int64) + node_weights.weight_ptr[owner]
    widths = np.diff(tree.child_ptr)[tree.inner].astype(np.int64)[owner]
    return np.cumsum(widths) - widths


def _sparse(node_weights: NodeWeights, tree: LabelTree, threshold: float) -> NodeWeights:
    """Dense blocks as pairs, node by node, because a block may fill most of the memory."""
    features, starts, children, weights = [], [], [], []
    n_children = np.diff(tree.child_ptr)[tree.inner]
    for node in range(len(tree.inner)):
        block = node_weights.weights[node_weights.weight_ptr[node] : node_weights.weight_ptr[node + 1]]
        block = block.reshape(-1, n_children[node])
        row, child = np.nonzero(np.abs(block) > threshold)
        kept, first = np.unique(row, return_index=True)
        own = node_weights.features[node_weights.feature_ptr[node] : node_weights.feature_ptr[node + 1]]
        features.append(own[kept])
        starts.append(first.astype(np.uint32))
        children.append(child.astype(np.int32))
        weights.append(block[row, child])
    arrays: dict[str, npt.NDArray[Any]] = {
        "feature_ptr": pointer_to([len(part) for part in features]),
        "features": np.concatenate(features),
        "weight_ptr": pointer_to([len(part) for part in weights]),
        "row_start": np.concatenate(starts),
        "child": np.concatenate(children),
        "weights": np.concatenate(weights),
        "bias": node_weights.bias,
        "vector_weights": node_weights.vector_weights,
        "vector_scale": node_weights.vector_scale,
    }
    return narrow(arrays, tree, "float32")


def _select(node_weights: NodeWeights, keep: npt.NDArray[np.bool_]) -> NodeWeights:
    """Sparse weights with only the pairs to keep, and the features that still have any."""
    n_inner = len(node_weights.feature_ptr) - 1
    owner = np.repeat(np.arange(n_inner), np.diff(node_weights.feature_ptr))
    before = np.concatenate([[0], np.cumsum(keep)])
    starts = node_weights.row_start.astype(np.int64) + node_weights.weight_ptr[owner]
    counts = np.diff(before[np.append(starts, len(keep))])
    weight_ptr = before[node_weights.weight_ptr]
    alive = counts > 0
    if not alive.any():  # empty arrays are read as dense blocks, whose weights are float32
        node_weights = replace(
            node_weights, weights=node_weights.weights.astype(np.float32), scale=np.empty(0, np.float32)
        )
    return replace(
        node_weights,
        feature_ptr=pointer_to(np.bincount(owner[alive], minlength=n_inner)),
        features=node_weights.features[alive],
        weight_ptr=weight_ptr,
        row_start=(before[starts] - weight_ptr[owner])[alive].astype(np.uint32),
        child=node_weights.child[keep],
        weights=node_weights.weights[keep],
    )


def _steps(weights: F32, ptr: I64) -> tuple[npt.NDArray[np.int8], F32]:
    """The weights of each node as multiples of 1/127 of its largest, and that number."""
    counts = np.diff(ptr)
    scale = np.ones(len(counts), np.float32)
    filled = counts > 0
    if filled.any():
        largest = np.maximum.reduceat(np.abs(weights), ptr[:-1][filled])
        scale[filled] = np.maximum(largest, np.finfo(np.float32).tiny) / _STEPS
    return np.rint(weights / np.repeat(scale, counts)).astype(np.int8), scale


def _to_int8(node_weights: NodeWeights) -> NodeWeights:
    steps, scale = _steps(_plain(node_weights), node_weights.weight_ptr)
    return _select(replace(node_weights, weights=steps, scale=scale), steps != 0)
