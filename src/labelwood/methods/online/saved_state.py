"""Checks of a saved growing tree: a damaged file must not reach the kernel."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.packed.base import check_pointer, require
from labelwood.sparse import HEAVIEST, Arrays, are_light

_TYPES = {
    "parent": np.int32, "label": np.int32, "auxiliary": np.uint8, "answers_as": np.int32, "retired": np.uint8,
    "support": np.int64, "first_seen": np.int64, "last_seen": np.int64, "feature_ptr": np.int64, "features": np.int64,
    "first": np.int32, "value": np.float32, "row_ptr": np.int64, "weights": np.float32, "sums": np.float32,
    "gradient_ptr": np.int64, "gradients": np.float32,
}  # fmt: skip
RECORDS = ("answers_as", "retired", "support", "first_seen", "last_seen")

_LARGEST = 2**62  # counts below this cannot overflow by learning on


_OWNER = "the growing tree is damaged"
_require = partial(require, _OWNER)


def check_records(arrays: Arrays, n_labels: int) -> dict[str, npt.NDArray[Any]]:
    """The label records, checked against ``n_labels`` labels."""
    kept = {name: np.ascontiguousarray(arrays[name]) for name in RECORDS}
    count = len(kept["support"])
    for name, array in kept.items():
        _require(array.dtype == _TYPES[name] and array.shape == (count,), f"{name} does not fit")
    _require(count <= n_labels, "more label records than labels")
    for name in ("support", "first_seen", "last_seen"):
        _require(((kept[name] >= -1) & (kept[name] < _LARGEST)).all(), f"{name} must be counts")
    targets = kept["answers_as"]
    _require(((targets >= 0) & (targets < count)).all(), "answers_as must be labels")
    return kept


def check_growing(arrays: Arrays, n_labels: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a growing tree, checked for every invariant that the kernel relies on."""
    kept = {name: np.ascontiguousarray(arrays[name]) for name in _TYPES}
    for name, array in kept.items():
        _require(array.dtype == _TYPES[name] and array.ndim == 1, f"{name} must be {np.dtype(_TYPES[name])}")
    check_records(kept, n_labels)
    parent, label, auxiliary = kept["parent"], kept["label"], kept["auxiliary"]
    n_nodes = len(parent)
    _require(n_nodes >= 1 and len(label) == len(auxiliary) == n_nodes, "nodes do not agree")
    _require(parent[0] == -1 and ((parent[1:] >= 0) & (parent[1:] < n_nodes)).all(), "parents must be nodes")
    _check_no_cycle(parent)
    n_children = np.bincount(parent[1:], minlength=n_nodes)
    labels = label[label >= 0]
    _require((label < len(kept["support"])).all() and len(np.unique(labels)) == len(labels), "labels repeat")
    empty = n_nodes == 1 and label[0] < 0
    _require(((label >= 0) == (n_children == 0)).all() or empty, "a node has either children or a label")
    has_block = (n_children > 0) | (auxiliary != 0)
    lanes = np.concatenate([[1], (n_children + (auxiliary != 0))[has_block]])
    _check_blocks(kept, lanes)
    return kept


def _check_no_cycle(parent: npt.NDArray[np.int32]) -> None:
    # Pointer doubling: after log2(n) rounds every node must have reached the root.
    above = np.maximum(parent, 0)
    for _ in range(max(1, len(parent).bit_length())):
        above = above[above]
    _require((above == 0).all(), "parents must lead to the root")


def _check_blocks(kept: dict[str, npt.NDArray[Any]], lanes: npt.NDArray[np.int64]) -> None:
    n_blocks = len(lanes)
    ends = {"feature_ptr": "features", "row_ptr": "weights", "gradient_ptr": "gradients"}
    for pointer, target in ends.items():
        check_pointer(_OWNER, pointer, kept[pointer], n_blocks, len(kept[target]))
    n_features = len(kept["features"])
    _require(len(kept["first"]) == len(kept["value"]) == n_features, "features do not agree")
    _require(len(kept["sums"]) == len(kept["weights"]), "weights and sums do not agree")
    _require((kept["features"] >= 0).all(), "features must not be negative")
    owner = np.repeat(np.arange(n_blocks), np.diff(kept["feature_ptr"]))
    rises = (np.diff(kept["features"]) > 0) | (np.diff(owner) > 0)
    _require(rises.all(), "the features of a block must rise")
    with_row = np.bincount(owner, weights=kept["first"] < 0, minlength=n_blocks).astype(np.int64)
    _require((np.diff(kept["row_ptr"]) == (with_row + 1) * lanes).all(), "rows do not fit")
    n_gradients = np.diff(kept["gradient_ptr"])
    _require((n_gradients % np.maximum(lanes, 1) == 0).all() and (n_gradients[lanes == 0] == 0).all(), "gradients")
    visits = n_gradients // np.maximum(lanes, 1)
    _require((kept["first"] < visits[owner]).all(), "first must be a visit of its block")
    for name in ("weights", "sums", "gradients", "value"):
        _require(are_light(kept[name]), f"{name} must be finite and at most {HEAVIEST:g}")
    _require((kept["sums"] >= 0).all(), "sums must not be negative")
