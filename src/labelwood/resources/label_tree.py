"""The bytes, peak memory and seconds of label trees before training.

The features that a node's rows use bound the weights that it stores (Eq. 18 of the paper on model size), so they are
counted for every node. A sample tells how many weights a threshold leaves, and the seconds: of every level some nodes
are drawn, of each node some children, and trained as ``fit`` trains them; where all rows would take too long, on two
parts of the rows, from which the numbers are extrapolated. One tree is planned; others are taken to be like it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.packed.label_tree import child_type
from labelwood.packed.tree_shape import LabelTree
from labelwood.resources import memory, theory
from labelwood.resources.estimate import Banded, Choice, Estimate, Growth, extrapolate, peak_of
from labelwood.sparse import CSR, F64, I32, I64

# Trains classifiers on rows, whose labels are an indptr, indices and a number; returns weights, features x labels.
Train = Callable[[I32, I64, I32, int], npt.NDArray[np.float32]]

_LANES = 16  # siblings that the solver takes side by side
_PICKED = _LANES - 1  # children of a node that are trained; one more classifier stands for all others
_DRAWS = 8  # nodes, shared out among the levels by their work; each level has at least one more
_POWER = 0.7  # a child with n rows keeps about n^0.7 weights
_SHARE = 0.015  # of the training work goes into the sample
_LEAST_WORK = 5e6  # visited entries: hundredths of a second
_THINNED = Growth(0.0, 1.2, slowing=0.94)  # of kept weights with the rows of a node
_SECONDS = Growth(1.0, 1.1)
# Passes over a node's entries: to gather them, and more for a block if all rows are positive for some sibling.
_GATHER, _CROWDED = 2.5, 4.0
_PAGE = 4096.0  # bytes; those of a node's weights at either end stay when its others go back to the system
_MOST_WIDE = 2.0**25  # bytes of a node's vectors that are copied; more are read where they are
_ARRAYS, _HEADER, _MANIFEST = 10, 400, 3000  # of a tree; bytes of a file's header; of the manifest
_STORE_SECONDS = Banded(8e-9, 4e-9, 1e-8)  # to write a weight, where all are kept


@dataclass(frozen=True)
class Plan:
    """An untrained tree and its counts: ``used`` features and ``entries`` per inner node, ``rows`` per tree node.

    Features are sparse columns. Rows may have ``n_columns`` dense ones, whose numbers are among the ``entries``, and of
    which every weight is kept.
    ``page_bytes`` are held of a file that rows are read from; ``node_bytes`` is the most that a node's entries take.
    ``likeness``: bytes of the tree that fit grows over those of this one: value, low and high.
    """

    tree: LabelTree
    used: I64
    entries: I64
    rows: I64
    n_features: int
    page_bytes: float = 0.0
    node_bytes: float = math.inf
    likeness: tuple[float, float, float] = (1.0, 1.0, 1.0)
    n_columns: int = 0

    @cached_property
    def children(self) -> I64:
        """Children of the inner nodes."""
        return np.diff(self.tree.child_ptr)[self.tree.inner].astype(np.int64)

    @property
    def weights(self) -> int:
        """Eq. (18)."""
        return theory.weights_of(self.tree, self.used)

    @property
    def used_columns(self) -> I64:
        """Features and dense columns of the inner nodes' rows."""
        found: I64 = self.used + self.n_columns * (self.rows[self.tree.inner] > 0)
        return found

    @property
    def vector_weights(self) -> int:
        """The weights of dense columns: of every node but the root."""
        return (self.tree.n_nodes - 1) * self.n_columns

    def sums(self, of_nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums over the children of the inner nodes."""
        return np.add.reduceat(of_nodes, self.tree.child_ptr[self.tree.inner])

    def work(self, n_children: I64) -> F64:
        """Entries visited to train so many children of the inner nodes; a block takes at least 0.4 of a full one."""
        rows = self.rows[self.tree.inner]
        crowding = np.minimum(_LANES * self.sums(self.rows) / self.children / np.maximum(rows, 1), 1.0)
        blocks = np.maximum(n_children / _LANES, 0.4)
        found: F64 = (self.entries + rows) * (_GATHER + (1 + _CROWDED * crowding) * blocks)
        return found


class Kept(NamedTuple):
    """Weights above a threshold, and features with any of them."""

    weights: Banded
    features: Banded


def draw(sizes: F64, count: int, random: np.random.Generator) -> tuple[I64, F64]:
    """Places drawn in proportion to their sizes, large ones repeatedly, and how many places each stands for."""
    sizes = np.maximum(sizes, 1e-9)
    marks = (np.arange(count) + random.random()) / count * sizes.sum()
    places = np.minimum(np.searchsorted(np.cumsum(sizes), marks, side="right"), len(sizes) - 1)
    return places, sizes.sum() / (count * sizes[places])


class Sampler:
    """Trains a small part of a tree to tell what it keeps above each threshold, and its seconds on one thread."""

    def __init__(self, plan: Plan, Y: CSR, train: Train, thresholds: Sequence[float], seed: int) -> None:
        self._plan, self._label, self._train, self._thresholds = plan, Y.indices, train, thresholds
        self._random = np.random.default_rng(seed)
        self._row = np.repeat(np.arange(Y.n_rows, dtype=np.int32), np.diff(Y.indptr))  # of every entry of Y
        self._chance = self._random.random(Y.n_rows)[self._row]  # below a share: in this share of the rows
        self._sizes = plan.rows.astype(np.float64) ** _POWER
        self._work, self._block = plan.work(plan.children), plan.work(np.minimum(plan.children, _LANES))
        self.seconds = nothing = Banded(0.0, 0.0, 0.0)
        self.kept: dict[float | None, Kept] = {each: Kept(nothing, nothing) for each in thresholds}
        tree, parts = plan.tree, theory.inner_levels(plan.tree)
        work = np.sqrt([self._work[part].sum() for part in parts])
        allowed = max(_SHARE * self._work.sum(), _LEAST_WORK) * work / work.sum()
        leaves = np.flatnonzero(tree.label >= 0)
        below = leaves[np.argsort(tree.label[leaves])]  # by label: the child of a level's node that it is below
        for depth in reversed(range(len(parts))):
            below = np.where(below >= tree.level_ptr[depth + 2], tree.parent[below], below)
            if work[depth]:  # labels without rows may be a level of their own
                self._level(parts[depth], below, float(allowed[depth]))

    def estimate(self, method: str, setting: Setting, smaller: Mapping[str, Setting], grow: Banded) -> Estimate:
        """The estimate of a model; ``smaller`` are settings to propose, ``grow`` the seconds of growing a tree."""
        memory.give_back()
        plan, totals = (self._plan, {name: other.totals(self._plan, self.kept) for name, other in smaller.items()})
        model, peak = setting.totals(plan, self.kept)
        seconds = self.seconds.times(1 / (1 + 0.8 * (setting.n_threads - 1)))  # two threads do the work of 1.8
        seconds = seconds.plus(_STORE_SECONDS.times(plan.weights if setting.threshold is None else 0))
        return Estimate(
            method=method,
            n_trees=setting.n_trees,
            model_bytes=model,
            peak_bytes=peak,
            seconds=seconds.plus(grow).times(setting.n_trees),
            levels=theory.levels(plan.tree, plan.used_columns),
            **theory.against_one_vs_rest(plan.tree, plan.used_columns, plan.likeness[0]),
            choices=[Choice(name, size.value, top.high) for name, (size, top) in totals.items()],
        )

    def _level(self, part: slice, below: I64, allowed: float) -> None:
        """Add the sample of one level."""
        plan, block, totals = self._plan, self._block[part], self._plan.sums(self._sizes)[part]
        used, children, work = plan.used[part], plan.children[part], float(self._work[part].sum())
        n_draws = 1 + math.ceil(_DRAWS * work / self._work.sum())
        n_draws = min(n_draws, max(len(totals), math.ceil(children.sum() / _PICKED)))
        drawn, weight = draw(totals / np.sqrt(block + 1), n_draws, self._random)
        share = allowed / (1.5 * float(block[drawn].sum()) + 1)
        shares = (1.0,) if share > 0.6 else (share / 2, share)
        entries = np.flatnonzero(self._chance < shares[-1])
        child = below[self._label[entries]]
        trained = [self._node(node, entries, child, shares) for node in plan.tree.inner[part][drawn].tolist()]
        found, clocks = (np.array(each) for each in zip(*trained, strict=True))
        seconds = extrapolate(clocks.sum(axis=0), 1 / shares[-1], _SECONDS).spread(0.7, 1.4)
        self.seconds = self.seconds.plus(seconds.times(work / float(block[drawn].sum() + 1)))
        base = weight * totals[drawn]
        for at, (threshold, kept) in enumerate(self.kept.items()):
            # Kept weights over sizes: a ratio estimator and three times its relative standard error.
            ratios = weight @ found[:, :, at] / base.sum()
            variance = ((weight * found[:, -1, at] - ratios[-1] * base) ** 2).sum() * n_draws / max(n_draws - 1, 1)
            error = 3 * math.sqrt(variance) / max(ratios[-1] * base.sum(), 1e-9)
            whole = extrapolate(ratios, 1 / shares[-1], _THINNED).times(float(totals.sum()))
            weights = np.minimum(whole.spread(max(0.0, 1 - error), 1 + error), used @ children)
            # A feature has at most one weight per child. Otherwise U features with W weights between them are taken
            # to keep U W / (U + W), which was 0.75 to 1.35 of the truth.
            likely = np.array((1.0, 0.75, 1.35)) * weights * used.sum() / np.maximum(weights + used.sum(), 1)
            features = np.clip(likely, weights / children.mean(), used.sum())
            own = (Banded(*each.tolist()) for each in (weights, features))
            self.kept[threshold] = Kept(*(a.plus(b) for a, b in zip(kept, own, strict=True)))

    def _node(self, node: int, entries: I64, child: I64, shares: Sequence[float]) -> tuple[F64, F64]:
        """What the children of a node keep, judged by some of them, and the seconds, by share of the rows."""
        tree, (first, last) = self._plan.tree, self._plan.tree.child_ptr[node : node + 2].tolist()
        picked, weight = np.arange(last - first), np.ones(last - first)
        if len(picked) > _PICKED:
            by_rows = np.argsort(self._plan.rows[first:last], kind="stable")
            places, weight = draw(self._sizes[first:last][by_rows], _PICKED, self._random)
            picked = by_rows[places]
        own, place = np.unique(picked, return_inverse=True)
        label_of = np.full(last - first, len(own), np.int32)
        label_of[own] = np.arange(len(own))
        mine = np.flatnonzero(tree.parent[child] == node)
        entries, labels = entries[mine], label_of[child[mine] - first]
        found, clocks = np.zeros((len(shares), len(self._thresholds))), np.zeros(len(shares))
        for at, share in enumerate(shares):
            if len(some := np.flatnonzero(self._chance[entries] < share)):
                starts = np.flatnonzero(np.diff(self._row[entries[some]], prepend=-1))
                rows, indptr = self._row[entries[some[starts]]], np.append(starts, len(some))
                clock = time.process_time()
                weights = np.abs(self._train(rows, indptr, labels[some], len(own) + 1))
                clocks[at] = time.process_time() - clock
                found[at] = [(weights > each).sum(axis=0)[place] @ weight for each in self._thresholds]
        return found, clocks


def layout(plan: Plan, kept: Kept | None, weight_bytes: int) -> tuple[Banded, Banded]:
    """Bytes of one tree, packed and while it is put together; ``kept`` None: with every weight."""
    packed, held = _sparse_layout(plan, kept, weight_bytes)
    own = 4 if kept is None else weight_bytes
    # The weights of dense columns are trained as floats, then narrowed.
    return packed.plus(own * plan.vector_weights), held.plus((4 + (own if own < 4 else 0)) * plan.vector_weights)


def _sparse_layout(plan: Plan, kept: Kept | None, weight_bytes: int) -> tuple[Banded, Banded]:
    nodes = plan.tree.n_nodes, len(plan.tree.inner)
    if kept is None:
        packed = theory.packed_tree_bytes(*nodes, plan.weights, float(plan.used.sum()))
        blocks = 4.0 * plan.children * plan.used
        ends, one = float(np.minimum(blocks, 2.0 * _PAGE).sum()), float(blocks.max())
        held = np.multiply(plan.likeness, (packed + 0.5 * ends + one, packed, packed + ends + one))
        return Banded(*plan.likeness).times(packed), Banded(*held.tolist())
    features = kept.features.times(8).plus(theory.packed_tree_bytes(*nodes, 0, 0))
    child_bytes = np.dtype(child_type(int(plan.children.max()))).itemsize
    packed_sparse = kept.weights.times(child_bytes + weight_bytes).plus(features)
    # Joining the nodes gives back all but the pages at the ends of a node.
    ends = min(2.0 * _PAGE * len(plan.tree.inner), packed_sparse.value)
    return packed_sparse, packed_sparse.plus(Banded(0.5 * ends, 0.0, ends))


def workspace(plan: Plan, n_threads: int, *, keeps_all: bool) -> float:
    """Bytes that training holds besides weights: rows by node, the nodes' problems, the solvers' state, pages."""
    rows = plan.rows[plan.tree.inner].astype(np.float64)
    of_vectors = plan.n_columns * rows
    problem = np.minimum(8.0 * (plan.entries - of_vectors + rows), plan.node_bytes) + 16.0 * rows + 12.0 * plan.used
    problem += np.minimum(4.0 * of_vectors, _MOST_WIDE)
    solver = 4.0 * _LANES * (plan.used_columns + rows) + 6.0 * rows
    columns = 0.0 if keeps_all else 16.0 * float(np.max(plan.used * np.minimum(plan.children, _LANES)))
    each = float(np.partition(problem, -2)[-2]) if len(problem) > 1 else 0.0
    shared = float((problem + solver).max()) + (n_threads - 1) * (each + float(solver.max()))
    members = 4.0 * float(plan.rows.sum()) + 8.0 * plan.tree.n_nodes
    return shared + members + columns + 8.0 * n_threads * plan.n_features + plan.page_bytes


class Setting(NamedTuple):
    """What of a model's parameters decides its bytes; ``names_bytes`` are those of its label names."""

    n_trees: int
    threshold: float | None
    dtype: str
    names_bytes: int
    n_threads: int

    def totals(self, plan: Plan, kept: Mapping[float | None, Kept]) -> tuple[Banded, Banded]:
        """Bytes of the saved model, and of the process at the peak of a training that starts now."""
        own = kept.get(self.threshold)  # None: every weight
        packed, in_training = layout(plan, own, np.dtype(self.dtype).itemsize)
        others = packed.times(self.n_trees - 1).spread(0.97, 1.03)
        files = _MANIFEST + self.n_trees * _ARRAYS * _HEADER
        model = packed.plus(others).plus(Banded(files, files / 2, files)).plus(self.names_bytes)
        space = workspace(plan, self.n_threads, keeps_all=own is None)
        return model, peak_of(in_training.plus(others).plus(space), memory.resident())

    def bound(self, plan: Plan) -> float:
        """Bytes that the process cannot come to hold more than, known from the counts alone."""
        everything = Kept(*(Banded(n, n, n) for n in (float(plan.weights), float(plan.used.sum()))))
        return self.totals(plan, {} if self.threshold is None else {self.threshold: everything})[1].high
