"""Boosted regression trees as flat arrays: the second stage of a ranker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.packed.base import PicklesFieldsOnly, require
from labelwood.sparse import F32, F64, HEAVIEST, I32

PREFIX = "boosted."
_OWNER = "BoostedTrees"


@dataclass(frozen=True)
class BoostedTrees(PicklesFieldsOnly):
    """Trees whose leaf values are added up, beginning with ``start``.

    The nodes of a tree are consecutive and begin with its root, ``roots``. An inner node goes to ``children`` if its
    feature is at most its threshold, else to the node after that. A leaf has child -1. ``values`` holds the value of a
    leaf, and for an inner node the mean of the leaves below it, weighted by training examples.
    """

    roots: I32
    features: I32
    thresholds: F32
    children: I32
    values: F64
    start: float

    @classmethod
    def pack(cls, trees: Iterable[npt.NDArray[Any]], start: float) -> BoostedTrees:
        """The trees of scikit-learn's histogram boosting, given by their structured arrays of nodes."""
        roots: list[int] = []
        columns: list[list[tuple[int, float, int, float]]] = []
        size = 0
        for nodes in trees:
            roots.append(size)
            columns.append(_renumbered(nodes, size))
            size += len(nodes)
        flat = [node for tree in columns for node in tree]
        features, thresholds, children, values = zip(*flat, strict=True) if flat else ((), (), (), ())
        return cls(
            np.array(roots, np.int32),
            np.array(features, np.int32),
            _rounded_down(np.array(thresholds, np.float64)),
            np.array(children, np.int32),
            np.array(values, np.float64),
            float(start),
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    def kernel_arrays(self) -> dict[str, Any]:
        """The fields by name, as kernels take them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def sums(self, features: F32) -> F64:
        """The sum of every feature vector."""
        found: F64 = _core.boosted_sums(self.kernel_arrays(), features)
        return found

    def contributions(self, vector: F32) -> tuple[float, F64]:
        """The sum of the roots, and what each feature adds to it on the way to the leaves."""
        base, added = self.start, np.zeros(len(vector))
        for root in self.roots.tolist():
            node = root
            base += float(self.values[root])
            while (child := int(self.children[node])) >= 0:
                feature = int(self.features[node])
                below = child + int(vector[feature] > self.thresholds[node])
                added[feature] += self.values[below] - self.values[node]
                node = below
        return base, added

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        found = {PREFIX + name: value for name, value in self.kernel_arrays().items() if name != "start"}
        return {**found, PREFIX + "start": np.array([self.start])}

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], n_features: int) -> BoostedTrees:
        """The inverse of :meth:`arrays`; checks every invariant."""
        types: dict[str, Any] = {"roots": np.int32, "features": np.int32, "thresholds": np.float32}
        types |= {"children": np.int32, "values": np.float64, "start": np.float64}
        given = {name: arrays[PREFIX + name] for name in types}
        for name, kind in types.items():
            fits = given[name].ndim == 1 and given[name].dtype == kind
            require(_OWNER, fits, f"{name} must be a one-dimensional array of {np.dtype(kind)}")
        require(_OWNER, len(given["start"]) == 1, "start must be one number")
        start = float(given.pop("start")[0])
        return cls(**given, start=start).check(n_features)

    def check(self, n_features: int) -> BoostedTrees:
        """Check every invariant and return self."""
        n_nodes = len(self.children)
        same = len(self.features) == len(self.thresholds) == len(self.values) == n_nodes
        require(_OWNER, same, "features, thresholds, children and values must have the same length")
        rises = self.n_trees == 0 or (self.roots[0] == 0 and (np.diff(self.roots) > 0).all())
        require(_OWNER, rises and (self.n_trees > 0 or n_nodes == 0), "roots must rise from 0")
        require(_OWNER, self.n_trees == 0 or self.roots[-1] < n_nodes, f"roots must be below {n_nodes}")
        ends = np.repeat(np.append(self.roots[1:], n_nodes), np.diff(np.append(self.roots, n_nodes)))
        inner = self.children != -1
        after = self.children.astype(np.int64)[inner]
        own = np.flatnonzero(inner)
        fits = ((after > own) & (after + 1 < ends[inner])).all()
        require(_OWNER, fits, "children must come after their parent, within its tree")
        pairs = np.concatenate([after, after + 1])
        require(_OWNER, len(np.unique(pairs)) == len(pairs), "a node must have one parent")
        known = (self.features[inner] >= 0) & (self.features[inner] < n_features)
        require(_OWNER, known.all(), f"features must be in [0, {n_features})")
        require(_OWNER, not np.isnan(self.thresholds[inner]).any(), "thresholds must be numbers")
        sane = np.isfinite(self.start) and (np.abs(self.values) <= HEAVIEST).all()
        require(_OWNER, sane, "values must be finite numbers")
        return self


def _renumbered(nodes: npt.NDArray[Any], first: int) -> list[tuple[int, float, int, float]]:
    """Feature, threshold, child and value of each node, level by level, siblings side by side."""
    order, at = [0], 0
    children: list[int] = []
    waiting = deque([0])
    while waiting:
        node = nodes[waiting.popleft()]
        if node["is_leaf"]:
            children.append(-1)
        else:
            children.append(first + len(order))
            pair = (int(node["left"]), int(node["right"]))
            order += pair
            waiting += pair
        at += 1
    means = _means(nodes)
    return [
        (0, 0.0, -1, means[old]) if child < 0 else _split(nodes[old], child, means[old])
        for old, child in zip(order, children, strict=True)
    ]


def _split(node: Any, child: int, mean: float) -> tuple[int, float, int, float]:
    return int(node["feature_idx"]), float(node["num_threshold"]), child, mean


def _means(nodes: npt.NDArray[Any]) -> list[float]:
    """The value of each leaf; for an inner node, the mean of its leaves weighted by their examples."""
    found = [0.0] * len(nodes)
    for at in reversed(range(len(nodes))):  # children come after their parents
        node = nodes[at]
        if node["is_leaf"]:
            found[at] = float(node["value"])
        else:
            left, right = int(node["left"]), int(node["right"])
            counts = float(nodes[left]["count"]), float(nodes[right]["count"])
            found[at] = (counts[0] * found[left] + counts[1] * found[right]) / sum(counts)
    return found


def _rounded_down(thresholds: F64) -> F32:
    """The largest float32 at most each threshold: float32 features fall on the same side of it."""
    near = thresholds.astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float32)
