"""The size, peak memory and time of label trees before training.

What a node stores follows from the features that its rows use, which are counted without training (Eq. 18 of the paper
on model size). Where a threshold drops weights, ``tree_sample`` tells how many are left. The quick grade counts a
random tree of the shape that clustering would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
NARROW = 4  # the fewest that fill a block
_GIVEN_BACK = 2.0**20  # bytes of a block that goes back to the system when it is freed
# Besides its passes over all rows, a block is passed over the rows that are positive for any of its siblings, and these
# are written to: measured, a block whose rows are all positive for some sibling takes about five times as long.
_CROWDED = 4.0
# A random tree mixes labels that have little in common, a clustered one does not: the share of all features that its
# nodes use is the random node's to this power. Measured: 1.3 on yso_finna_en, 1.8 on eurlex57k, 1 on dense data.
_CLUSTERED_POWER = 1.35
_CLUSTERED_ENTRIES = (
    0.62  # of the rows of its nodes below the root. Measured on three sets: 0.53, 0.66, 0.69.
)
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
    """An untrained tree and what was counted on it; arrays are per inner node, ``rows`` per tree node.

    ``shrunk``: entries over those of the tree that was counted, less than 1 where another one is meant.
    """

    tree: LabelTree
    used: F64
    entries: F64
    rows: I64
    n_features: int
    shrunk: F64 | float = 1.0

    @property
    def children(self) -> I64:
        """Children of the inner nodes."""
        return np.diff(self.tree.child_ptr)[self.tree.inner].astype(np.int64)

    @property
    def groups(self) -> I64:
        """Blocks of siblings that the solver takes one after the other."""
        return -(-self.children // LANES)

    @property
    def visited(self) -> F64:
        """Entries of the inner nodes' rows, with the constant one."""
        return self.entries + self.rows[self.tree.inner]

    @cached_property
    def crowding(self) -> F64:
        """For every tree node, how much longer a block of siblings like it takes than one without positive rows."""
        return 1 + _CROWDED * np.minimum(LANES * self.rows / np.maximum(self.rows_above, 1), 1.0)

    @cached_property
    def work(self) -> F64:
        """Training work of the inner nodes."""
        first = self.tree.child_ptr[self.tree.inner]
        crowding = np.add.reduceat(self.crowding, first) / self.children
        return self.visited * crowding * blocks_of(self.children)

    @cached_property
    def rows_above(self) -> I64:
        """For every tree node, the rows of its parent."""
        return self.rows[self.tree.parent]

    @cached_property
    def used_above(self) -> F64:
        """For every tree node, the features that its parent uses."""
        used = np.zeros(self.tree.n_nodes)
        used[self.tree.inner] = self.used
        above: F64 = used[self.tree.parent]
        return above

    @property
    def weights(self) -> int:
        """Eq. (18)."""
        return size.weights_of(self.tree, np.rint(self.used))


def blocks_of(n_siblings: npt.NDArray[Any]) -> F64:
    """Blocks that so many siblings take; one that is not full takes less time."""
    full, rest = np.divmod(n_siblings, LANES)
    found: F64 = full + np.select([rest == 0, rest <= NARROW, rest <= 2 * NARROW], [0.0, 0.4, 0.6], 1.0)
    return found


def count(rows: TrainingRows, Y: CSR, tree: LabelTree, run: Run) -> Plan:
    """Count the features of every inner node."""
    with run.phase("count") as progress:
        used, entries, members = _core.count_tree(rows.X, Y, tree, run.n_threads, progress)
    return Plan(tree, used.astype(np.float64), entries.astype(np.float64), members, rows.X.n_cols)


def as_if_clustered(plan: Plan) -> Plan:
    """The counts of a random tree turned into those that a clustered tree would have."""
    whole = max(plan.used[0], 1.0)
    used = whole * (plan.used / whole) ** _CLUSTERED_POWER
    shrunk = np.full(len(used), _CLUSTERED_ENTRIES)
    shrunk[0] = 1.0
    return Plan(plan.tree, used, plan.entries * shrunk, plan.rows, plan.n_features, shrunk)


class Kept(NamedTuple):
    """What survives a threshold in the whole tree: weights, and features with any of them."""

    weights: Figure
    features: Figure


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
        # Nodes' blocks are put together one after the other; large ones are given back, of the others more or less.
        blocks = 4.0 * plan.children * plan.used
        twice, one = float(blocks[blocks < _GIVEN_BACK].sum()), float(blocks.max())
        return Layout(known(packed), Figure(packed + 0.65 * twice + one, packed, packed + twice + one))
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
