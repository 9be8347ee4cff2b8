"""Twin of forest/router.hpp, forest/leaf_average.hpp and forest/projection.hpp: one row, one node at a time.

``forest`` is a :class:`~labelwood.packed.routed_forest.RoutedForest`. Rows must be prepared: weighted, cut
and scaled. :func:`largest_share` and :func:`cut_row` are the twins of sparse/keep_largest.hpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.explain.forest import projection_rows
from labelwood.packed.routed_forest import RoutedForest
from labelwood.run_context import RunContext
from labelwood.sparse import CSR

_SMALLEST = 2.0**-129 - 2.0**-149  # the largest square that counts as 0
_SLACK = 1e-9  # so that rounding does not decide how many entries of equal size are kept


def projection_matrix(kind: str, n_input: int, n_columns: int, seed: int) -> npt.NDArray[np.float64]:
    """The projection matrix, ``n_input x n_columns``, which the kernel never stores."""
    return np.eye(n_input) if kind == "none" else projection_rows(kind, np.arange(n_input), n_columns, seed)


def in_order(values: list[float]) -> float:
    """Sum from left to right; Python's ``sum`` may compensate for rounding."""
    total = 0.0
    for value in values:
        total += value
    return total


def largest_share(entries: dict[int, np.float32], share: float, most: int | None = None, least: int = 0) -> list[int]:
    """The columns of the largest entries that together make up ``share`` of the squared length.

    At least ``least`` (if that many are not 0) and at most ``most`` columns are kept.
    """
    squares = {column: value * value for column, value in entries.items() if value != 0}
    wanted = share * in_order([float(s) for s in squares.values()]) * (1 - _SLACK) if share < 1 else np.inf
    kept: list[int] = []
    reached = 0.0
    for column in sorted(squares, key=lambda column: (-squares[column], column))[:most]:
        if reached >= wanted and len(kept) >= least:
            break
        kept.append(column)
        reached += float(squares[column])
    return kept


def cut_row(values: npt.NDArray[np.float32], share: float, least: int) -> list[int]:
    """Positions of the largest values, at least ``least``, that make up a share of a row's squared length."""
    if len(values) <= least:
        return list(range(len(values)))
    top = np.abs(values).max(initial=0)
    relative = values / top if top > 0 else values
    seen = {at: value for at, value in enumerate(relative) if value * value > _SMALLEST}
    return sorted(largest_share(seen, share, least=least))


def children_visited(scores: npt.NDArray[np.float64], threshold: float | None) -> npt.NDArray[Any]:
    """The routing rule: every child above the threshold; the best child if there is none or no threshold."""
    if threshold is not None and (scores > threshold).any():
        return np.flatnonzero(scores > threshold)
    return np.array([np.argmax(scores)])


def route(forest: Any, row: npt.NDArray[np.float64], tree: int) -> list[int]:
    """The leaves that a dense, prepared row reaches in one tree, from left to right."""
    reached, pending = [], [tree]
    inner = np.flatnonzero(np.diff(forest.child_ptr) > 0)
    while pending:
        node = pending.pop()
        children = np.arange(forest.child_ptr[node], forest.child_ptr[node + 1])
        if len(children) == 0:
            reached.append(node)
            continue
        seen = row
        if len(forest.seeds):
            own = forest.routing.seed_per_node
            seed = int(forest.seeds[np.searchsorted(inner, node) if own else tree])
            seen = row @ projection_matrix(forest.routing.projection, len(row), forest.routing.n_columns, seed)
        scores = np.empty(len(children))
        for i, child in enumerate(children):
            columns, weights = forest.vector(child)
            scores[i] = seen[columns] @ weights.astype(np.float64) + forest.bias[child]
        pending += children[children_visited(scores, forest.routing.threshold)][::-1].tolist()
    return reached


def scores(forest: Any, row: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The label distributions of the leaves that a row reaches, averaged within trees, then over trees, or at once."""
    total = np.zeros(forest.n_labels)
    reached = [route(forest, row, tree) for tree in range(forest.n_trees)]
    every = sum(map(len, reached))
    for leaves in reached:
        for node in leaves:
            labels, values = forest.leaf(node)
            votes = every if forest.routing.leaf_votes else len(leaves) * forest.n_trees
            total[labels] += values.astype(np.float64) / votes
    return total


def rows_of_nodes(forest: RoutedForest, X: CSR) -> np.ndarray:
    """The number of rows that pass each node, counted from the leaves that the router says they reach."""
    counts = np.bincount(forest.paths(X, RunContext(n_threads=1)).nodes, minlength=forest.n_nodes)
    for node in range(forest.n_nodes - 1, -1, -1):
        counts[node] += counts[forest.child_ptr[node] : forest.child_ptr[node + 1]].sum()
    return counts
