"""Packed instance forests: trees that route a row to leaves, and leaves that are label distributions.

A :class:`RoutedForest` is the fitted state of every instance-forest method. All trees lie in one set of flat arrays. A
node scores each of its children by the dot product of the row with the child's sparse vector, plus a bias, and sends
the row to the best child, or to every child above a threshold. Prediction averages the leaves reached within a tree,
then the trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.packed.base import PicklesFieldsOnly, check_pointer, pointer_to, require
from labelwood.packed.tree_shape import level_bounds
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F32, HEAVIEST, I32, I64, TopK, are_light, never_falls

U32 = npt.NDArray[np.uint32]

_OWNER = "RoutedForest"
_require = partial(require, _OWNER)

PROJECTIONS = ("none", "hash", "gaussian")
SHORT_ROW = 100  # rows are never cut below this many entries
_HALF_MOST = 2**16  # ids below this fit 16 bits


@dataclass(frozen=True)
class Routing:
    """How a row is prepared and which children it visits.

    ``threshold`` None: the row visits the best child, the first of equals. Else it visits every child that scores above
    the threshold, and the best if none does. After features are weighted, a row keeps its largest entries that make up
    ``row_share`` of its squared length, at least :data:`SHORT_ROW`; ``normalize`` then scales it to unit length.
    ``projection`` "hash": column j becomes column h(j) of ``n_columns`` with a sign s(j); "gaussian": a dense normal
    matrix. The coefficients follow from a seed and are never stored. ``seed_per_node``: each inner node has its own
    seed, else each tree. ``leaf_votes``: every leaf that a row reaches has one vote, else every tree has one.
    """

    threshold: float | None = None
    normalize: bool = False
    projection: str = "none"
    n_columns: int = 0
    seed_per_node: bool = False
    row_share: float = 1.0
    leaf_votes: bool = False

    def facts(self) -> dict[str, Any]:
        """The JSON-able facts to save."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def restore(cls, facts: Any) -> Routing:
        """The inverse of :meth:`facts`; checks every value."""
        _require(isinstance(facts, dict), "routing must be an object")
        added = {"row_share": 1.0, "leaf_votes": False}  # older models do not say
        routing = cls(**{field.name: {**added, **facts}[field.name] for field in fields(cls)})
        threshold = routing.threshold
        largest = float(np.finfo(np.float32).max)
        _require(threshold is None or (type(threshold) in (int, float) and abs(threshold) <= largest), "bad threshold")
        for flag in ("normalize", "seed_per_node", "leaf_votes"):
            _require(type(getattr(routing, flag)) is bool, f"{flag} must be true or false")
        share = routing.row_share
        _require(type(share) in (int, float) and 0 < share <= 1, "row_share must be above 0 and at most 1")
        _require(routing.projection in PROJECTIONS, "unknown projection")
        fits = type(routing.n_columns) is int and 0 <= routing.n_columns < 2**31
        _require(fits and (routing.n_columns > 0) == (routing.projection != "none"), "n_columns does not fit")
        return routing


class Paths(NamedTuple):
    """The leaves of row ``r`` in tree ``t``: ``nodes[ptr[i]:ptr[i + 1]]`` with ``i = r * n_trees + t``."""

    ptr: I64
    nodes: I32


@dataclass(frozen=True)
class RoutedForest(PicklesFieldsOnly):
    """A forest as flat arrays.

    Node ids are breadth-first over the whole forest: the roots are ``0 .. n_trees``, then come all their
    children, and so on; the children of ``u`` are ``child_ptr[u] .. child_ptr[u + 1]``, all larger than
    ``u``; a node without children is a leaf. The vector by which ``u``'s parent scores ``u`` is
    ``weights[weight_ptr[u]:weight_ptr[u + 1]]`` on the ascending columns ``weight_features[...]``, with
    ``bias[u]``; those of the roots are empty. The ``i``-th leaf (in id order) gives the ascending
    ``leaf_labels[leaf_ptr[i]:leaf_ptr[i + 1]]`` the probabilities ``leaf_values[...]``. ``seeds`` of the
    projection: one per tree, or one per inner node (in id order), or none. ``feature_weights``: one factor
    per input column (idf), or none.
    """

    child_ptr: I32
    weight_ptr: I64
    weight_features: npt.NDArray[Any]
    weights: npt.NDArray[Any]
    bias: F32
    leaf_ptr: I64
    leaf_labels: npt.NDArray[Any]
    leaf_values: npt.NDArray[Any]
    seeds: U32
    feature_weights: F32
    routing: Routing
    n_features: int
    n_labels: int

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.child_ptr[0])

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return len(self.child_ptr) - 1

    @property
    def n_columns(self) -> int:
        """Columns of a row as the nodes see it."""
        return self.routing.n_columns or self.n_features

    @cached_property
    def leaves(self) -> I32:
        """Node ids of the leaves, ascending."""
        return np.flatnonzero(np.diff(self.child_ptr) == 0).astype(np.int32)

    @cached_property
    def parent(self) -> I32:
        """Parent of every node, -1 for a root."""
        parents = np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.child_ptr))
        return np.concatenate([np.full(self.n_trees, -1, np.int32), parents])

    @cached_property
    def level_ptr(self) -> I64:
        """Levels are slices: the nodes of depth ``d`` are ``level_ptr[d] .. level_ptr[d + 1]``."""
        return level_bounds(self.child_ptr, n_roots=self.n_trees)

    @property
    def depth(self) -> int:
        """Edges from a root to the deepest leaf."""
        return len(self.level_ptr) - 2

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def vector(self, node: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Columns and weights by which a node is scored."""
        span = slice(self.weight_ptr[node], self.weight_ptr[node + 1])
        return self.weight_features[span], self.weights[span]

    def leaf(self, node: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Labels and probabilities of a leaf, by its node id."""
        number = int(np.searchsorted(self.leaves, node))
        span = slice(self.leaf_ptr[number], self.leaf_ptr[number + 1])
        return self.leaf_labels[span], self.leaf_values[span]

    def path_to(self, node: int) -> list[int]:
        """The nodes from the root to ``node``, both included."""
        path = [int(node)]
        while self.parent[path[-1]] >= 0:
            path.append(int(self.parent[path[-1]]))
        return path[::-1]

    def prepare(self, X: CSR) -> CSR:
        """Rows in the form of training: weighted, cut and scaled, not yet projected."""
        routing = self.routing
        return prepare(X, self.feature_weights, normalize=routing.normalize, row_share=routing.row_share)

    def topk(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels of highest averaged probability for each row."""
        rows = self.prepare(X)
        with run.phase("route", X.nnz) as progress:
            labels, scores = self._router.topk(rows, k, run.n_threads, progress, self._mask(run.allowed))
        return TopK(labels, scores)

    def paths(self, X: CSR, run: RunContext) -> Paths:
        """The leaves that each row reaches in each tree; :meth:`path_to` gives the nodes on the way."""
        rows = self.prepare(X)
        with run.phase("route", X.nnz) as progress:
            return Paths(*self._router.leaves(rows, run.n_threads, progress))

    @cached_property
    def _router(self) -> _core.ForestRouter:
        r = self.routing
        arrays = {
            "child_ptr": self.child_ptr,
            "weight_ptr": self.weight_ptr,
            "weight_features": self.weight_features,
            "weights": _as_bits(self.weights),
            "bias": self.bias,
            "leaf_ptr": self.leaf_ptr,
            "leaf_labels": self.leaf_labels,
            "leaf_values": _as_bits(self.leaf_values),
            "seeds": self.seeds,
        }
        options = {
            "n_trees": self.n_trees,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "projection": r.projection,
            "n_columns": r.n_columns,
            "seed_per_node": r.seed_per_node,
            "several": r.threshold is not None,
            "threshold": r.threshold or 0.0,
            "leaf_votes": r.leaf_votes,
        }
        return _core.ForestRouter(arrays, options)

    def _mask(self, allowed: I32 | None) -> npt.NDArray[np.uint8] | None:
        if allowed is None:
            return None
        mask = np.zeros(self.n_labels, np.uint8)
        mask[allowed] = 1
        return mask

    def shrink(
        self, *, vector_size: int | None = None, leaf_size: int | None = None, dtype: str | None = None
    ) -> RoutedForest:
        """A smaller forest: the largest entries of each vector and leaf, numbers in ``dtype``."""
        changes: dict[str, Any] = {}
        if vector_size is not None:
            ptr, columns, values = _cut(self.weight_ptr, self.weight_features, self.weights, vector_size)
            changes |= {"weight_ptr": ptr, "weight_features": columns, "weights": values}
        if leaf_size is not None:
            ptr, labels, values = _cut(self.leaf_ptr, self.leaf_labels, self.leaf_values, leaf_size)
            changes |= {"leaf_ptr": ptr, "leaf_labels": labels, "leaf_values": values}
        for name in ("weights", "leaf_values"):
            own = getattr(self, name)
            changes[name] = changes.get(name, own).astype(dtype or own.dtype)
        return replace(self, **changes)

    def first_trees(self, count: int) -> RoutedForest:
        """The forest of the first ``count`` trees."""
        root = np.arange(self.n_nodes)
        for first, last in pairwise(self.level_ptr[1:].tolist()):
            root[first:last] = root[self.parent[first:last]]
        kept, n_children = root < count, np.diff(self.child_ptr)
        lengths, sizes = np.diff(self.weight_ptr), np.diff(self.leaf_ptr)
        vectors, leaves = np.repeat(kept, lengths), np.repeat(kept[self.leaves], sizes)
        return replace(
            self,
            child_ptr=(count + pointer_to(n_children[kept])).astype(np.int32),
            weight_ptr=pointer_to(lengths[kept]),
            weight_features=self.weight_features[vectors],
            weights=self.weights[vectors],
            bias=self.bias[kept],
            leaf_ptr=pointer_to(sizes[kept[self.leaves]]),
            leaf_labels=self.leaf_labels[leaves],
            leaf_values=self.leaf_values[leaves],
            seeds=self.seeds[kept[n_children > 0]] if self.routing.seed_per_node else self.seeds[:count],
        )

    def check(self) -> RoutedForest:
        """Assert every invariant that the router relies on; return self."""
        wanted = {"child_ptr": np.int32, "weight_ptr": np.int64, "bias": np.float32, "leaf_ptr": np.int64}
        for name, dtype in {**wanted, "seeds": np.uint32, "feature_weights": np.float32}.items():
            _require(getattr(self, name).dtype == dtype, f"{name} must be {np.dtype(dtype)}")
        _require(all(array.ndim == 1 for array in self.arrays().values()), "arrays must be one-dimensional")
        ptr = self.child_ptr
        _require(len(ptr) > 1 and 0 < ptr[0] <= len(ptr) - 1 == ptr[-1], "child_ptr must end at the number of nodes")
        _require(never_falls(ptr), "child_ptr must never fall")
        _require(bool((ptr[:-1] > np.arange(self.n_nodes)).all()), "children must follow their parent")
        vectors = (self.weight_ptr, self.weight_features, self.weights)
        _check_rows("weights", *vectors, n_rows=self.n_nodes, n_ids=self.n_columns)
        _require(bool(self.weight_ptr[self.n_trees] == 0), "a root has no vector")
        _require(len(self.bias) == self.n_nodes, "bias must have one value per node")
        _require(are_light(self.bias), "bias must be finite")
        n_leaves = len(self.leaves)
        leaves = (self.leaf_ptr, self.leaf_labels, self.leaf_values)
        _check_rows("leaves", *leaves, n_rows=n_leaves, n_ids=self.n_labels)
        _require(bool((self.leaf_values >= 0).all()), "leaf_values must not be negative")
        n_seeds = self.n_nodes - n_leaves if self.routing.seed_per_node else self.n_trees
        wanted_seeds = 0 if self.routing.projection == "none" else n_seeds
        _require(len(self.seeds) == wanted_seeds, f"seeds must be {wanted_seeds} in number")
        _require(len(self.feature_weights) in (0, self.n_features), "feature_weights must be one per feature")
        _require(are_light(self.feature_weights), "feature_weights must be finite")
        return self

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays to save, by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], routing: Routing, n_features: int, n_labels: int
    ) -> RoutedForest:
        """The inverse of :meth:`arrays`; checks every invariant."""
        return cls(
            **{name: arrays[name] for name in ARRAYS}, routing=routing, n_features=n_features, n_labels=n_labels
        ).check()


ARRAYS = tuple(field.name for field in fields(RoutedForest) if field.name not in ("routing", "n_features", "n_labels"))


def narrow(
    arrays: Mapping[str, npt.NDArray[Any]], *, routing: Routing, n_features: int, n_labels: int,
    weight_dtype: str = "float16", leaf_dtype: str = "float16",
) -> RoutedForest:  # fmt: skip
    """The forest from a growing kernel's arrays, in the smallest types that hold them.

    ``arrays`` are those of ``FlatForest`` in grown_forest.hpp; ``seeds`` and ``feature_weights`` are optional.
    """
    n_columns = routing.n_columns or n_features
    return RoutedForest(
        **{
            "seeds": np.empty(0, np.uint32),
            "feature_weights": np.empty(0, np.float32),
            **arrays,
            "weight_features": arrays["weight_features"].astype(_id_type(n_columns)),
            "weights": arrays["weights"].astype(weight_dtype),
            "leaf_labels": arrays["leaf_labels"].astype(_id_type(n_labels)),
            "leaf_values": arrays["leaf_values"].astype(leaf_dtype),
        },
        routing=routing,
        n_features=n_features,
        n_labels=n_labels,
    )  # fmt: skip


def prepare(X: CSR, feature_weights: F32, *, normalize: bool, row_share: float = 1.0) -> CSR:
    """Weight features, keep each row's largest entries that make up a share of its squared length, then normalize."""
    indptr, indices = X.indptr, X.indices
    data = X.data * feature_weights[indices] if len(feature_weights) else X.data
    if row_share < 1:
        indptr, kept = _core.keep_share(indptr, data, float(row_share), SHORT_ROW)
        indices, data = indices[kept], data[kept]
    if normalize:
        data = _core.unit_rows(indptr, data)
    return CSR(indptr, indices, data, X.n_cols)


def _cut(
    ptr: I64, ids: npt.NDArray[Any], values: npt.NDArray[Any], most: int
) -> tuple[I64, npt.NDArray[Any], npt.NDArray[Any]]:
    wide = values.astype(np.float32, copy=False)
    kept = _core.keep_largest(ptr, wide, most)
    return pointer_to(np.minimum(np.diff(ptr), most)), ids[kept], wide[kept]


def _id_type(count: int) -> type[np.uint16] | type[np.int32]:
    return np.uint16 if count <= _HALF_MOST else np.int32


def _as_bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """NumPy's float16 is a plain 16-bit number to the kernel."""
    return values.view(np.uint16) if values.dtype == np.float16 else values


def _check_rows(
    name: str, ptr: I64, ids: npt.NDArray[Any], values: npt.NDArray[Any], *, n_rows: int, n_ids: int
) -> None:
    _require(ids.dtype == _id_type(n_ids), f"ids of {name} must be {np.dtype(_id_type(n_ids))}")
    _require(values.dtype in (np.float16, np.float32), f"{name} must be float16 or float32")
    _require(len(ids) == len(values), f"{name} and their ids must have the same length")
    check_pointer(_OWNER, f"the pointer of {name}", ptr, n_rows, len(ids))
    if not len(ids):
        return
    _require(bool(ids.min() >= 0 and ids.max() < n_ids), f"ids of {name} must be in [0, {n_ids})")
    rises = ids[1:] > ids[:-1]
    starts = ptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(ids))] - 1] = True  # a new row may start anywhere
    _require(bool(rises.all()), f"ids of {name} must be sorted and distinct within a row")
    _require(are_light(values), f"{name} must be finite and at most {HEAVIEST:g}")
