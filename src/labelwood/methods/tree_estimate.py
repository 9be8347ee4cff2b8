"""The size, peak memory and time of label trees before training.

What a node stores follows from the features that its rows use, which are counted without training (Eq. 18 of the paper
on model size). Where a threshold drops weights, a few siblings of a few nodes are trained to see what they keep; these
also tell the time. The quick grade counts some nodes of a random tree of the shape that clustering would give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood import _core, size
from labelwood.estimate import Figure, known
from labelwood.methods.training_rows import TrainingRows
from labelwood.progress import Run
from labelwood.sparse import CSR, I64
from labelwood.trees import LabelTree

LANES = 16  # siblings that the solver takes side by side
SAMPLED_SHARE = {"exact": 0.04, "quick": 0.02}  # of the training work goes into trained samples
_GIVEN_BACK = 2.0**25  # bytes of a block that every common allocator returns to the system
_MIXED = 1.4  # a block of rare and frequent siblings takes so much longer than training's, of similar ones
_FREE_WORK = 2e5  # non-zeros times blocks that are trained in any case: some milliseconds
# A random tree mixes labels that have little in common, a clustered one does not: the share of all features that its
# nodes use is the random node's to this power. Measured: 1.3 on yso_finna_en, 1.8 on eurlex57k, 1 on dense data.
_CLUSTERED_POWER = 1.35
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Solver:
    """The settings of a node's classifiers, under the names that the kernels give them."""

    logistic: bool
    cost: float
    tolerance: float
    skip: float
    max_passes: int
    bias: float
    offset: float


@dataclass(frozen=True)
class Plan:
    """An untrained tree and what was counted on it; arrays are per inner node, ``rows`` per tree node."""

    tree: LabelTree
    used: F64
    entries: F64
    rows: I64
    n_features: int

    @property
    def children(self) -> I64:
        """Children of the inner nodes."""
        return np.diff(self.tree.child_ptr)[self.tree.inner].astype(np.int64)

    @property
    def groups(self) -> I64:
        """Blocks of siblings that the solver takes one after the other."""
        return -(-self.children // LANES)

    @property
    def work(self) -> F64:
        """Training work of the inner nodes: non-zeros times blocks."""
        return (self.entries + self.rows[self.tree.inner]) * self.groups

    @property
    def weights(self) -> int:
        """Eq. (18)."""
        return size.weights_of(self.tree, np.rint(self.used))


def count(rows: TrainingRows, Y: CSR, tree: LabelTree, run: Run) -> Plan:
    """Count the features of every inner node."""
    with run.phase("count") as progress:
        used, entries, members = _core.count_tree(
            *rows.arguments, Y.indptr, Y.indices, Y.n_cols, tree.child_ptr, tree.label, run.n_threads, progress,
            resident=rows.X.resident,
        )  # fmt: skip
    return Plan(tree, used.astype(np.float64), entries.astype(np.float64), members, rows.X.n_cols)


def as_if_clustered(plan: Plan) -> Plan:
    """The counts of a random tree turned into those that a clustered tree would have."""
    whole = max(plan.used[0], 1.0)
    used = whole * (plan.used / whole) ** _CLUSTERED_POWER
    shrunk = used / np.maximum(plan.used, 1.0)
    return Plan(plan.tree, used, plan.entries * np.sqrt(shrunk), plan.rows, plan.n_features)


class Kept(NamedTuple):
    """What survives a threshold in the whole tree: weights, and features with any of them."""

    weights: Figure
    features: Figure


@dataclass(frozen=True)
class Sample:
    """Trained siblings of some nodes, and what of them survives each of ``thresholds``."""

    plan: Plan
    inner: I64  # numbers of the sampled inner nodes
    picked_ptr: I64  # where the trained siblings of each begin
    picked: npt.NDArray[np.int32]
    thresholds: tuple[float, ...]
    found: dict[str, npt.NDArray[Any]]

    def kept(self, threshold: float) -> Kept:
        """Weights and features of the whole tree that are above the threshold."""
        at = self.thresholds.index(threshold)
        plan, sampled, found = self.plan, self.inner, self.found["weights"][:, at].astype(np.float64)
        child = self._size_of_children(found)
        by_node = np.add.reduceat(child, plan.tree.child_ptr[plan.tree.inner])
        share = by_node[sampled] / np.array([child[picks].sum() for picks in self.picks])
        weights = _by_level(plan, sampled, np.add.reduceat(found, self.picked_ptr[:-1]) * share, by_node)
        least, most = self._features(at, share)
        low = _by_level(plan, sampled, least, plan.used)
        high = _by_level(plan, sampled, most, plan.used)
        cap = float(plan.used.sum())
        # The high reading came nearer on eurlex57k and yso_finna_en, and errs on the side that does not surprise.
        return Kept(weights, Figure(min(high.value, cap), min(low.low, cap), min(high.high, cap)))

    def _size_of_children(self, found: F64) -> F64:
        """A size for every tree node: what a child keeps grows with a power of its rows, read off the sample."""
        rows = self.plan.rows[np.concatenate(self.picks)]
        trained = rows > 0
        x, y = np.log(np.maximum(rows[trained], 1)), np.log(np.maximum(found[trained], 0.5))
        x = x - x.mean() if len(x) else x
        power = min(max(float(x @ y / max(x @ x, 1e-9)), 0.0), 1.0)
        sizes: F64 = np.where(self.plan.rows > 0, np.maximum(self.plan.rows, 1.0) ** power, 1e-9)
        return sizes

    @property
    def picks(self) -> list[npt.NDArray[np.int64]]:
        """The tree nodes that were trained, for each sampled node."""
        first = self.plan.tree.child_ptr[self.plan.tree.inner[self.inner]]
        parts = np.split(self.picked, self.picked_ptr[1:-1])
        return [begin + part for begin, part in zip(first.tolist(), parts, strict=True)]

    def _features(self, at: int, share: F64) -> tuple[F64, F64]:
        """Features that all siblings of the sampled nodes keep: a low and a high reading of the sample.

        Low: Chao's estimate from the features that one or two siblings kept. High: the growth from half of the
        sampled siblings to all of them goes on at its pace. None has more than the node uses.
        """
        found, once, twice, half = (
            self.found[name][:, at].astype(np.float64) for name in ("features", "once", "twice", "half")
        )
        used, n_picked = self.plan.used[self.inner], np.diff(self.picked_ptr)
        unseen = np.minimum(once * np.maximum(once - 1, 0) / (2 * (twice + 1)), np.maximum(used - found, 0))
        rate = np.where(unseen > 0, once / np.maximum(n_picked * unseen + once, 1e-9), 1.0)
        least = found + unseen * (1 - (1 - np.minimum(rate, 1.0)) ** (n_picked * np.maximum(share - 1, 0)))
        pace = np.log2(np.maximum(found, 1) / np.maximum(half, 1))
        return np.minimum(least, used), np.minimum(found * np.maximum(share, 1) ** pace, used)

    def seconds(self, n_threads: int) -> Figure:
        """Seconds of training the whole tree on so many threads."""
        build, solve = self.found["seconds"].T
        plan, sampled = self.plan, self.inner
        per_group = plan.entries + plan.rows[plan.tree.inner]
        total = _by_level(plan, sampled, solve / _MIXED * plan.groups[sampled], plan.work)
        total = total.plus(_by_level(plan, sampled, build, per_group))
        # Threads share caches and memory: two do the work of 1.8.
        return Figure(total.value, total.value / 1.5, total.value * 1.5).times(
            1 / (1 + 0.8 * (n_threads - 1))
        )


def _by_level(plan: Plan, sampled: I64, found: F64, size_of: F64) -> Figure:
    """A total over all inner nodes from the sampled ones, which grow with ``size_of``, level by level.

    A level without a sample is read from the next one below that has one. The band is two standard errors wide,
    and never less than 5 percent.
    """
    total, variance, uncounted = 0.0, 0.0, 0.0
    for part in reversed(size.inner_levels(plan.tree)):
        own = (sampled >= part.start) & (sampled < part.stop)
        uncounted += float(size_of[part].sum())
        base = size_of[sampled[own]]
        if not own.any() or base.sum() <= 0:
            continue
        ratio = found[own].sum() / base.sum()
        total += ratio * uncounted
        residual = found[own] - ratio * base
        doubt = np.sqrt((residual**2).sum()) / base.sum() if own.sum() > 1 else 0.1 * ratio
        variance += (doubt * uncounted) ** 2
        uncounted = 0.0
    error = max(2 * math.sqrt(variance), 0.05 * total)
    return Figure(total, max(0.0, total - error), total + error)


def sample(
    rows: TrainingRows,
    Y: CSR,
    plan: Plan,
    solver: Solver,
    thresholds: tuple[float, ...],
    share: float,
    run: Run,
) -> Sample:
    """Train one block of siblings in each of some nodes, a small share of all the work."""
    random = np.random.default_rng(run.seed)
    chosen: list[int] = []
    spent, allowed = 0.0, _FREE_WORK
    per_group = plan.entries + plan.rows[plan.tree.inner]
    for part in reversed(size.inner_levels(plan.tree)):
        allowed += share * float(plan.work[part].sum())
        for number in random.permutation(np.arange(part.start, part.stop)).tolist():
            if chosen and spent + per_group[number] > allowed:
                break
            chosen.append(number)
            spent += per_group[number]
    inner = np.array(sorted(chosen), np.int64)
    picks = [_spread(plan, int(number), random) for number in inner]
    ptr = np.concatenate([[0], np.cumsum([len(pick) for pick in picks])]).astype(np.int64)
    with run.phase("sample"):
        found = _core.sample_tree(
            *rows.arguments, Y.indptr, Y.indices, Y.n_cols, plan.tree.child_ptr, plan.tree.label,
            plan.tree.inner[inner], ptr, np.concatenate(picks), thresholds=np.array(thresholds, np.float32),
            seed=run.seed, scale=rows.scale, resident=rows.X.resident, most_entries=rows.most_entries, **vars(solver),
        )  # fmt: skip
    return Sample(plan, inner, ptr, np.concatenate(picks), thresholds, found)


def _spread(plan: Plan, number: int, random: np.random.Generator) -> npt.NDArray[np.int32]:
    """Siblings of a node from the rarest to the most frequent, evenly spread; in random order."""
    node = plan.tree.inner[number]
    counts = plan.rows[plan.tree.child_ptr[node] : plan.tree.child_ptr[node + 1]]
    order = np.argsort(counts, kind="stable")
    n_picked = min(LANES, len(order))
    places = (np.arange(n_picked) + random.random()) * len(order) / n_picked
    picked = order[np.minimum(places.astype(np.int64), len(order) - 1)]
    return random.permutation(picked).astype(np.int32)


class Layout(NamedTuple):
    """Bytes of the packed arrays of one tree, and of what its training holds at the peak."""

    stored: Figure
    in_training: Figure


def dense_bytes(n_nodes: int, n_inner: int, n_weights: float, n_features: float) -> float:
    """Bytes of a tree that keeps every weight: float32 weights, each node's features once, and the nodes.

    ``child_ptr``, ``label`` and ``bias`` per node, ``feature_ptr`` and ``weight_ptr`` per inner node.
    """
    return 4.0 * n_weights + 4.0 * n_features + 12.0 * n_nodes + 16.0 * n_inner + 20


def layout(plan: Plan, kept: Kept | None, weight_bytes: int) -> Layout:
    """The bytes of a tree: every weight (``kept`` None), or the weights and features that are kept."""
    n_nodes, n_inner = plan.tree.n_nodes, len(plan.tree.inner)
    if kept is None:
        packed = dense_bytes(n_nodes, n_inner, plan.weights, float(np.rint(plan.used).sum()))
        # Nodes' blocks are put together one after the other; an allocator gives back what is large, and more or
        # less of the rest.
        blocks = 4.0 * plan.children * plan.used
        twice = float(blocks[blocks < _GIVEN_BACK].sum())
        return Layout(known(packed), Figure(packed + 0.65 * twice, packed, packed + twice))
    fixed = dense_bytes(n_nodes, n_inner, 0, 0)
    widest = int(plan.children.max())
    child_bytes = 1 if widest <= 2**8 else 2 if widest <= 2**16 else 4
    stored = kept.weights.times(child_bytes + weight_bytes).plus(kept.features.times(8.0)).plus(fixed)
    # Trained as pairs of 8 bytes, then put together: for a moment both are there, if nothing was given back.
    wide = kept.weights.times(8.0).plus(kept.features.times(8.0)).plus(fixed)
    return Layout(stored, Figure(2 * wide.value, wide.low, 2 * wide.high))


def workspace(plan: Plan, data: TrainingRows, n_threads: int, *, keeps_all: bool) -> float:
    """Bytes that training holds besides weights: rows by node, the nodes' problems, the solvers' state, pages."""
    rows, entries = plan.rows[plan.tree.inner].astype(np.float64), plan.entries
    problem = np.minimum(8.0 * (entries + rows), data.held_bytes) + 16.0 * rows + 12.0 * plan.used
    solver = 4.0 * LANES * (plan.used + rows) + 6.0 * rows
    columns = 0.0 if keeps_all else 16.0 * float(np.max(plan.used * np.minimum(plan.children, LANES)))
    shared = float((problem + solver).max())
    each = float(np.partition(problem, -2)[-2]) if len(problem) > 1 else 0.0
    members = 4.0 * float(plan.rows.sum()) + 8.0 * plan.tree.n_nodes
    return (
        shared
        + (n_threads - 1) * (each + float(solver.max()))
        + members
        + columns
        + 8.0 * n_threads * data.X.n_cols
        + data.X.resident
    )
