"""Instance forests grown some trees at a time, and merged as if they had grown at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core, executors
from labelwood.executors.work_unit import Unit
from labelwood.packed.tree_shape import level_bounds
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, Arrays, Progress, label_matrix, training_arrays


def grow(
    kernel: str, n_trees: int, X: CSR, Y: CSR, options: Mapping[str, Any], run: RunContext, *, node_seeds: bool
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a forest whose trees a kernel grows as work units.

    ``node_seeds``: the array ``seeds`` has one number per inner node, not one per tree.
    """
    setting = {"kernel": kernel, "n_features": X.n_cols, "n_labels": Y.n_cols}
    units = [
        Unit(
            f"trees{trees.start}-{trees.stop}",
            grow_part,
            setting={**setting, "options": {**options, "first_tree": trees.start, "n_trees": len(trees)}},
            cost=len(trees),
        )
        for trees in executors.tree_ranges(n_trees, run)
    ]
    return merge(executors.complete("grow", units, training_arrays(X, Y), run), node_seeds=node_seeds)


def grow_part(
    arrays: Arrays, setting: Mapping[str, Any], n_threads: int, progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    """Some trees of a forest."""
    X = CSR(arrays["x_indptr"], arrays["x_indices"], arrays["x_data"], setting["n_features"])
    Y = label_matrix(arrays["y_indptr"], arrays["y_indices"], setting["n_labels"])
    grown: dict[str, npt.NDArray[Any]] = getattr(_core, setting["kernel"])(
        X, Y, setting["options"], n_threads, progress
    )
    return grown


def merge(parts: Sequence[dict[str, npt.NDArray[Any]]], *, node_seeds: bool) -> dict[str, npt.NDArray[Any]]:
    """One forest of several; its nodes are ordered by level, within a level by tree."""
    if len(parts) == 1:
        return parts[0]
    levels = [_Levels(part) for part in parts]
    depth = max(len(own.bounds) for own in levels) - 1
    order = [(own, level) for level in range(depth) for own in levels if level < len(own.bounds) - 1]
    joined = {name: np.concatenate([own.nodes(name, level) for own, level in order]) for name in ("bias",)}
    n_children = np.concatenate([own.n_children[own.span(level)] for own, level in order])
    n_roots = sum(int(part["child_ptr"][0]) for part in parts)
    joined["child_ptr"] = np.concatenate([[n_roots], n_roots + np.cumsum(n_children)]).astype(np.int32)
    for pointer, names, of_leaves in (
        ("weight_ptr", ("weight_features", "weights"), False),
        ("leaf_ptr", ("leaf_labels", "leaf_values"), True),
    ):
        counts = [np.diff(own.part[pointer])[own.span(level, of_leaves)] for own, level in order]
        joined[pointer] = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
        for name in names:
            joined[name] = np.concatenate([own.entries(name, pointer, level, of_leaves) for own, level in order])
    for name in ("splits", "seeds"):
        if name in parts[0] and (name == "splits" or node_seeds):
            joined[name] = np.concatenate([own.inner(name, level) for own, level in order])
        elif name in parts[0]:
            joined[name] = np.concatenate([part[name] for part in parts])
    return joined


class _Levels:
    """A part of a forest, and where its levels begin among all nodes, leaves and inner nodes."""

    def __init__(self, part: dict[str, npt.NDArray[Any]]) -> None:
        self.part = part
        self.n_children = np.diff(part["child_ptr"])
        self.bounds = level_bounds(part["child_ptr"], n_roots=int(part["child_ptr"][0]))
        leaves_before = np.concatenate([[0], np.cumsum(self.n_children == 0)])
        self.leaves = leaves_before[self.bounds]
        self.inner_before = self.bounds - self.leaves

    def span(self, level: int, of_leaves: bool = False) -> slice:
        bounds = self.leaves if of_leaves else self.bounds
        return slice(int(bounds[level]), int(bounds[level + 1]))

    def nodes(self, name: str, level: int) -> npt.NDArray[Any]:
        return self.part[name][self.span(level)]

    def inner(self, name: str, level: int) -> npt.NDArray[Any]:
        return self.part[name][int(self.inner_before[level]) : int(self.inner_before[level + 1])]

    def entries(self, name: str, pointer: str, level: int, of_leaves: bool) -> npt.NDArray[Any]:
        """The entries of a level's nodes or leaves, which lie together."""
        span, ptr = self.span(level, of_leaves), self.part[pointer]
        return self.part[name][int(ptr[span.start]) : int(ptr[span.stop])]
