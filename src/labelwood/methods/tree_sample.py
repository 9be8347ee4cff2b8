"""What survives a threshold in a label tree, told by training a few of its classifiers.

Which weights survive, nobody knows before training. But a weight comes from the rows that are positive for its sibling,
so the number of features whose sum over these rows exceeds the threshold, the sibling's reach, tells most of it.
Siblings are sampled with chances that grow with their reach and trained as they would be; what they keep is described
by a curve

    log E[kept] = b0 + b1 log reach + b2 log rows + b3 rows / rows of the node + b4 log likeness

where a sibling's rows are as alike as the squared length of their mean tells,
and the total is that of the curve over all siblings, plus what the sampled ones keep beyond it, each counted by the
inverse of its chance. The same differences give the standard error.

Nodes near the root have so many rows that even one block of their siblings would be dear. These are trained on a share
of the rows: what is kept stays nearly in proportion to what is reached, and how it drifts is seen by training on half
of that share too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core, size
from labelwood.estimate import Figure
from labelwood.methods.training_rows import TrainingRows
from labelwood.methods.tree_estimate import F64, LANES, NARROW, Kept, Plan, Solver, blocks_of
from labelwood.progress import Run
from labelwood.sparse import CSR, I64

SAMPLED_SHARE = {"exact": 0.12, "quick": 0.03}  # of the training work goes into trained samples, at most
_FREE_WORK = 3.5e6  # visited entries, some hundredths of a second: always spent
_MOST_BLOCKS = 20  # 320 siblings: the standard error is then about a hundredth
_MOST_PASSES = 10  # by then the number of weights above a threshold is within half a percent of the last one
_APPEAL = 0.8  # the power of its reach that a sibling is drawn by: rare ones keep more than in proportion
_MARGIN = 0.025  # the most that an estimate is raised by, lest the truth be above it
_DEAR = 0.01  # of all training work: a block that takes more is trained on a share of the rows
_LEAST_SHARE, _ENOUGH_ROWS = (
    0.1,
    100,
)  # of a node's rows, and of each of its children, where not all are taken
_MOST_DRIFT = 1.1  # of what is kept over what is reached, when rows are doubled; measured: 0.96 to 1.05
_GROWTH = 1.15  # the power of its rows that a node's training takes
_START = np.array(
    [0.0, 1.0, 0.0, 0.0, 0.0]
)  # the curve's coefficients where the sample is silent: kept as reached
_FAITH = np.array([0.0, 1.0, 1.0, 1.0, 1.0])  # in that: worth so many siblings


@dataclass(frozen=True)
class Drawn:
    """The siblings to train: by node, and each with the chance that it had."""

    inner: I64  # numbers of the inner nodes
    picks: list[I64]  # tree nodes, for each of them
    chance: F64
    n_rows: I64  # rows of each node to train on


@dataclass(frozen=True)
class Sample:
    """Trained siblings of some nodes, and what of them survives each of ``thresholds``."""

    plan: Plan
    thresholds: tuple[float, ...]
    reach: I64  # tree nodes x thresholds
    reached: I64  # inner nodes x thresholds, by any child
    square: F64  # tree nodes: the squared length of the sum of their rows
    drawn: Drawn
    found: dict[str, npt.NDArray[Any]]
    halved: dict[int, dict[str, npt.NDArray[Any]]]  # by place in ``drawn``: trained on half as many rows
    _known: dict[int, Kept] = field(default_factory=dict)

    def kept(self, threshold: float) -> Kept:
        """Weights and features of the whole tree that are above the threshold."""
        at = self.thresholds.index(threshold)
        if at not in self._known:
            self._known[at] = Kept(self._weights(at), self._features(at))
        return self._known[at]

    def _weights(self, at: int) -> Figure:
        plan, chance = self.plan, self.drawn.chance
        live, picked = self._is_live, np.concatenate(self.drawn.picks)
        kept = self._as_whole(at)
        kept, chance, picked = kept[live[picked]], chance[live[picked]], picked[live[picked]]
        if not kept.sum():
            return Figure(0.0, 0.0, 0.0)
        reach = self.reach[:, at].astype(np.float64)
        about = np.stack(
            [
                np.ones(len(reach)),
                np.log(np.maximum(reach, 0.5)),
                np.log(np.maximum(plan.rows, 1)),
                plan.rows / np.maximum(plan.rows_above, 1),
                np.log(np.maximum(self.square, 1e-9) / np.maximum(plan.rows, 1) ** 2.0),
            ],
            axis=1,
        )
        curve = fit_curve(about[picked], kept, 1 / chance)
        expected = np.where(live, np.minimum(np.exp(np.minimum(about @ curve, 50)), plan.used_above), 0.0)
        beyond = kept - expected[picked]
        total = max(float(expected.sum() + (beyond / chance).sum()), float(kept.sum()))
        freedom = max(len(kept) - len(curve), 1)
        variance = float((beyond**2 * (1 / chance - 1) / chance).sum()) * len(kept) / freedom
        # Even the same sibling keeps a little more or less with other random numbers.
        error = max(math.sqrt(max(variance, 0.0)), 0.005 * total)
        # Half of the estimates would be below the truth: the value is raised so that few are.
        value = total + min(2.5 * error, _MARGIN * total)
        return Figure(value, max(total - 3 * error, 0.9 * float(kept.sum())), max(total + 3 * error, value))

    def _as_whole(self, at: int) -> F64:
        """What each picked sibling keeps, or would if it were trained on all rows of its node."""
        kept, reach = (self.found[name][:, at].astype(np.float64) for name in ("weights", "reach"))
        ends = np.cumsum([len(part) for part in self.drawn.picks])
        for place, half in self.halved.items():
            picked = self.drawn.picks[place]
            own = slice(ends[place] - len(picked), ends[place])
            kept_half, reach_half = (
                max(float(half[name][:, at].sum()), 1.0) for name in ("weights", "reach")
            )
            before, now = kept_half / reach_half, max(kept[own].sum(), 1.0) / max(reach[own].sum(), 1.0)
            doublings = math.log2(1 / self._share[place])
            drift = min(max(now / before, 1 / _MOST_DRIFT), _MOST_DRIFT) ** doublings
            kept[own] *= drift * self.reach[picked, at] / np.maximum(reach[own], 1.0)
        return kept

    @cached_property
    def _share(self) -> F64:
        """The share of its rows that each drawn node was trained on."""
        whole = self.plan.rows[self.plan.tree.inner[self.drawn.inner]]
        found: F64 = self.drawn.n_rows / np.maximum(whole, 1)
        return found

    def _features(self, at: int) -> Figure:
        """Features that the siblings of each node keep together: those they reach, as far as the sample did.

        The more siblings there are beside the sampled ones, the less it matters that each keeps more or less than
        it reaches.
        """
        plan, inner = self.plan, self.drawn.inner
        kept, reached = (self.found[name][:, at].astype(np.float64) for name in ("features", "reached"))
        n_picked = np.array([len(part) for part in self.drawn.picks])
        total = 0.0
        for part in size.inner_levels(plan.tree):
            own = (inner >= part.start) & (inner < part.stop)
            ratio = kept[own].sum() / max(reached[own].sum(), 1.0)
            factor = 1 + (ratio - 1) * np.sqrt(np.minimum(n_picked[own].mean() / plan.children[part], 1.0))
            total += float(np.minimum(plan.used[part], self.reached[part, at] * factor).sum())
        return Figure(total, 0.95 * total, min(1.05 * total, max(total, float(plan.used.sum()))))

    @cached_property
    def _is_live(self) -> npt.NDArray[np.bool_]:
        """Which tree nodes are children with a row of their own."""
        live: npt.NDArray[np.bool_] = self.plan.rows > 0
        live[0] = False
        return live

    def seconds(self, n_threads: int) -> Figure:
        """Seconds of training the whole tree on so many threads: level by level, since rows of a level are alike."""
        build, solve = self.found["seconds"].T
        plan, inner = self.plan, self.drawn.inner
        prices = np.array([plan.crowding[part].mean() for part in self.drawn.picks])
        visited = (plan.visited / plan.shrunk)[inner]
        trained = blocks_of(np.array([len(part) for part in self.drawn.picks])) * visited * prices
        trained *= self._share**_GROWTH
        total = build.sum() * plan.visited.sum() / max(float((visited * self._share).sum()), 1.0)
        for part in size.inner_levels(plan.tree):
            own = (inner >= part.start) & (inner < part.stop)
            total += solve[own].sum() * plan.work[part].sum() / max(float(trained[own].sum()), 1.0)
        # Threads share caches and memory: two do the work of 1.8.
        return Figure(total, total / 1.5, total * 1.5).times(1 / (1 + 0.8 * (n_threads - 1)))


def fit_curve(about: F64, kept: F64, weight: F64) -> F64:
    """Coefficients of a Poisson regression with logarithmic link, drawn towards ``_START``, by Newton's method."""
    curve = _START.copy()
    curve[0] = math.log((weight * kept).sum() / (weight * np.exp(about[:, 1:] @ curve[1:])).sum())
    for _ in range(12):
        expected = np.exp(np.minimum(about @ curve, 50))
        unit = len(kept) / (weight * expected).sum()  # every sibling counts as about one
        bend = (about.T * (unit * weight * expected)) @ about + np.diag(_FAITH)
        slope = unit * (about.T @ (weight * (kept - expected))) - _FAITH * (curve - _START)
        curve = curve + np.clip(np.linalg.solve(bend, slope), -1.0, 1.0)
    found: F64 = curve
    return found


def draw(plan: Plan, reach: F64, share: float, random: np.random.Generator) -> Drawn:
    """Choose siblings that take a share of all training work; of every level, at least a few."""
    first, last = plan.tree.child_ptr[plan.tree.inner], plan.tree.child_ptr[plan.tree.inner + 1]
    price = plan.crowding  # frequent siblings are dear, so that fewer of them are taken
    sizes = np.where(plan.rows > 0, np.maximum(reach, 0.5) ** _APPEAL, 1e-9) / np.sqrt(price)
    by_node = np.add.reduceat(sizes, first)
    dear = plan.visited * np.add.reduceat(sizes * price, first) / by_node
    thin = row_shares(plan, dear)
    blocks = _expected_blocks(plan, by_node, dear * np.where(thin < 1, 1.5 * thin, 1.0), share)
    sums = np.floor(np.cumsum(blocks) + random.random()).astype(np.int64)
    taken = np.diff(sums, prepend=0)
    chance, most = np.minimum(blocks, 1.0), taken * LANES
    for part in size.inner_levels(plan.tree):
        if taken[part].any():
            continue
        share_of = by_node[part] / by_node[part].sum()
        number = part.start + int(random.choice(part.stop - part.start, p=share_of))
        chance[part], most[number] = share_of, LANES if thin[number] < 1 else NARROW
    inner = np.flatnonzero(most)
    picks, chances = [], []
    for number in inner.tolist():
        own, odds = _draw_siblings(sizes[first[number] : last[number]], int(most[number]), random)
        picks.append(first[number] + own)
        chances.append(odds * chance[number])
    n_rows = np.rint(thin * plan.rows[plan.tree.inner])[inner].astype(np.int64)
    return Drawn(inner.astype(np.int64), picks, np.concatenate(chances), n_rows)


def row_shares(plan: Plan, dear: F64) -> F64:
    """The share of each inner node's rows to train on: less than all where a block is too dear and no sibling rare."""
    first = plan.tree.child_ptr[plan.tree.inner]
    rarest = np.minimum.reduceat(plan.rows, first)
    share = np.maximum(_DEAR * plan.work.sum(), _FREE_WORK / 2) / np.maximum(dear, 1.0)
    share = np.clip(np.maximum(share, _ENOUGH_ROWS / np.maximum(rarest, 1)), _LEAST_SHARE, 1.0)
    found: F64 = np.where(share < 0.6, share, 1.0)
    return found


def _expected_blocks(plan: Plan, by_node: F64, dear: F64, share: float) -> F64:
    """Blocks of siblings to take from each node on average: many where much is kept, few where a block is dear."""
    appeal = by_node / np.sqrt(np.maximum(dear, 1.0) * np.minimum(plan.children, LANES))
    allowed = max(share * float(plan.work.sum()), _FREE_WORK)
    low, high = 0.0, float((plan.groups / appeal).max())
    for _ in range(60):
        middle = (low + high) / 2
        blocks = np.minimum(plan.groups, middle * appeal)
        fits = (blocks * dear).sum() <= allowed and blocks.sum() <= _MOST_BLOCKS
        low, high = (middle, high) if fits else (low, middle)
    found: F64 = np.minimum(plan.groups, low * appeal)
    return found


def _draw_siblings(sizes: F64, count: int, random: np.random.Generator) -> tuple[I64, F64]:
    """So many siblings, chances in proportion to their sizes, evenly spread over them; and the chances."""
    chance = np.ones(len(sizes))
    free = np.ones(len(sizes), bool)
    while count < len(sizes) and free.any():
        chance[free] = (count - np.count_nonzero(~free)) * sizes[free] / sizes[free].sum()
        sure = free & (chance >= 1)
        if not sure.any():
            break
        chance[sure], free = 1.0, free & ~sure
    order = np.argsort(sizes, kind="stable")
    marks = np.arange(min(count, len(sizes))) + random.random()
    places = np.searchsorted(np.cumsum(chance[order]), marks, side="right")
    picked = np.unique(order[np.minimum(places, len(order) - 1)])
    return picked, np.maximum(chance[picked], 1e-9)


def sample(
    rows: TrainingRows,
    Y: CSR,
    plan: Plan,
    solver: Solver,
    thresholds: tuple[float, ...],
    own: float,
    share: float,
    run: Run,
) -> Sample:
    """Train some siblings, a small share of all the work, chosen by what they reach at the ``own`` threshold."""
    tree, levels = plan.tree, np.array(thresholds, np.float32)
    with run.phase("reach") as progress:
        reach, reached, square = _core.reach_tree(
            rows.X, Y, tree, levels, run.n_threads, progress, scale=rows.scale
        )
    chosen = reach[:, thresholds.index(own)].astype(np.float64)
    drawn = draw(plan, chosen, share, np.random.default_rng(run.seed))
    thinned = np.flatnonzero(drawn.n_rows < plan.rows[tree.inner[drawn.inner]])
    places = [*range(len(drawn.inner)), *thinned.tolist()]
    picks = [drawn.picks[place] for place in places]
    ptr = np.concatenate([[0], np.cumsum([len(part) for part in picks])]).astype(np.int64)
    nodes = tree.inner[drawn.inner[places]]
    with run.phase("sample"):
        picked = (np.concatenate(picks) - np.repeat(tree.child_ptr[nodes], np.diff(ptr))).astype(np.int32)
        n_rows = np.concatenate([drawn.n_rows, drawn.n_rows[thinned] // 2])
        options = {**vars(solver), "seed": run.seed, "most_entries": rows.most_entries}
        options["max_passes"] = min(solver.max_passes, _MOST_PASSES)
        found = _core.sample_tree(
            rows.X, Y, tree, nodes, ptr, picked, n_rows, levels, options, scale=rows.scale
        )
    n_own, n_picked = len(drawn.inner), ptr[len(drawn.inner)]
    by_sibling = ("weights", "reach")
    halved = {
        place: {name: found[name][ptr[n_own + i] : ptr[n_own + i + 1]] for name in by_sibling}
        for i, place in enumerate(thinned.tolist())
    }
    whole = {name: part[: n_picked if name in by_sibling else n_own] for name, part in found.items()}
    return Sample(plan, thresholds, reach, reached, square, drawn, whole, halved)
