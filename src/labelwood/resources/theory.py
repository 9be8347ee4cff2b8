"""How large a tree of linear classifiers is: the theory, with the equation numbers of the paper.

"Exploring Space Efficiency in a Tree-based Linear Model for Extreme Multi-label Classification" (Lin, Liu and Lin,
2024). A classifier has a weight for every feature that its training rows use; deeper nodes see fewer rows, so they use
fewer features, and a tree may hold fewer weights than one-vs-rest although it has more classifiers.

    L  labels      n  features      K  children of a node (arity)      d  depth of the tree, D the largest possible
    alpha  share of a node's features that a child still uses

What is measured on a real tree starts from ``used_features``, one number per inner node in the order of ids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.packed.tree_shape import LabelTree

PAPER_WEIGHT_BYTES = 8  # a double
PAPER_ENTRY_BYTES = 12  # a double and the number of its feature

F64 = npt.NDArray[np.float64]


def one_vs_rest_time(n_labels: int, n_rows: float, row_entries: float) -> float:
    """Eq. (4): feature values that training one-vs-rest reads in one iteration; Eq. (3) is one classifier of it."""
    return n_labels * n_rows * row_entries


def tree_time_by_depth(
    n_labels: int, n_rows: float, row_entries: float, arity: int, depth: int, row_labels: float | None = None
) -> list[float]:
    """Eqs. (21), (22) and (23): feature values that each depth of a balanced tree reads in one iteration.

    ``row_labels`` bounds the nodes of a depth that use a row, ``c log L`` of the paper; None: ``log L``.
    """
    _check(
        depth >= 2 and arity >= 2 and n_labels >= arity, "depth and arity must be at least 2, n_labels at least arity"
    )
    reached = math.log(n_labels) if row_labels is None else row_labels
    read = n_rows * row_entries
    middle = [arity * read * reached] * (depth - 2)
    return [arity * read, *middle, n_labels / float(arity) ** (depth - 1) * read * reached]


def tree_time(
    n_labels: int, n_rows: float, row_entries: float, arity: int, depth: int, row_labels: float | None = None
) -> float:
    """Eq. (5): an upper bound of the sum of :func:`tree_time_by_depth` if rows have a label or more.

    With ``depth = log_K L`` it is Eq. (6), ``K log_K(L) log(L)`` times the feature values of all rows.
    """
    reached = math.log(n_labels) if row_labels is None else row_labels
    return n_rows * row_entries * reached * children_on_path(n_labels, arity, depth)


def children_on_path(n_labels: int, arity: int, depth: int) -> float:
    """The factor ``K (d - 1) + L / K^(d - 1)`` of Eq. (5): children of the nodes from the root to a label."""
    return arity * (depth - 1) + n_labels / float(arity) ** (depth - 1)


def fewest_on_path(n_labels: int, depth: int) -> float:
    """Eq. (24): the least value ``d L^(1/d)`` of :func:`children_on_path`, reached at ``K = L^(1/d)``.

    >>> fewest_on_path(10_000, 2), children_on_path(10_000, 100, 2)
    (200.0, 200.0)
    """
    return float(depth * n_labels ** (1 / depth))


def smallest_alpha(arity: int) -> float:
    """Theorem 3: alpha is at least 1/K, because the children of a node use all of its features together."""
    return 1.0 / arity


def largest_depth(n_labels: int, arity: int) -> int:
    """Eqs. (12) and (13): D, the depth at which the last inner nodes still have two labels each.

    >>> largest_depth(2 * 10**8, 100)
    5
    """
    _check(n_labels >= 2 and arity >= 2, "n_labels and arity must be at least 2")
    depth = 1
    while n_labels >= 2 * arity**depth:
        depth += 1
    return depth


def dense_tree_weights(n_labels: int, n_features: int, arity: int, depth: int) -> int:
    """Eq. (11): weights of a balanced tree when every classifier has all features."""
    meta_labels: int = sum(arity**i for i in range(1, depth))
    return (n_labels + meta_labels) * n_features


def tree_weights(n_labels: int, n_features: float, arity: int, depth: int, alpha: float) -> float:
    """Eq. (14): weights of a balanced tree whose nodes use a share ``alpha`` of their parent's features.

    The geometric series is summed term by term, which covers the exception K alpha = 1 (Eq. 35) as well.
    """
    _check(depth >= 1 and 0 < alpha <= 1, "depth must be at least 1 and alpha in (0, 1]")
    above = sum((arity * alpha) ** i for i in range(depth - 1))
    return n_features * (arity * above + n_labels * alpha ** (depth - 1))


def size_ratio(n_labels: int, arity: int, depth: int, alpha: float) -> float:
    """Eq. (15): weights of a balanced tree over those of one-vs-rest.

    >>> round(size_ratio(2 * 10**8, 100, 4, 0.5), 4)
    0.1263
    """
    return tree_weights(n_labels, 1.0, arity, depth, alpha) / n_labels


def alpha_star(arity: int, depth: int, depth_limit: int) -> float:
    """The alpha* of Theorem 1: the root in (0, 1) of Eq. (16), ``alpha^(d-2) (K^(d-D) + alpha) = 1``.

    >>> round(alpha_star(100, 5, 5), 3)
    0.819
    """
    _check(2 < depth <= depth_limit, "depth must be above 2 and at most depth_limit")
    low, high = 0.0, 1.0
    extra = float(arity) ** (depth - depth_limit)
    while (middle := (low + high) / 2) not in (low, high):  # the left side rises: bisect to the last bit
        if middle ** (depth - 2) * (extra + middle) < 1.0:
            low = middle
        else:
            high = middle
    return low


def smaller_below(n_labels: int, arity: int, depth: int) -> float | None:
    """Theorem 1: the alpha below which the tree is smaller than one-vs-rest; None where the theorem is silent.

    Depth 2 by Eq. (25); deeper trees, of at least 4 children a node, by ``max(2 / K, alpha*)``.
    """
    limit = largest_depth(n_labels, arity)
    if not 2 <= depth <= limit:
        return None
    if depth == 2:
        return 1.0 - 0.5 / float(arity) ** (limit - 2)
    return max(2.0 / arity, alpha_star(arity, depth, limit)) if arity >= 4 else None


def falling_depths(n_labels: int, arity: int, alpha: float) -> range:
    """Theorem 2: the depths d at which one more level makes the tree smaller, 2..D-2 if alpha < 1 - 1/(2K)."""
    if alpha >= 1.0 - 0.5 / arity:
        return range(0)
    return range(2, largest_depth(n_labels, arity) - 1)


def weights_of(tree: LabelTree, used_features: npt.ArrayLike) -> int:
    """Eq. (18): the sum over inner nodes of children times used features."""
    return int(np.dot(_children(tree), np.asarray(used_features, np.int64)))


def paper_one_vs_rest_bytes(n_labels: int, n_features: int) -> int:
    """Eq. (17): n L doubles."""
    return n_labels * n_features * PAPER_WEIGHT_BYTES


def paper_tree_bytes(weights: int) -> int:
    """Eq. (19): a double and a four-byte feature number for each weight of Eq. (18)."""
    return weights * PAPER_ENTRY_BYTES


def paper_ratio(weights: int, n_labels: int, n_features: int) -> float:
    """Eq. (20): (19) over (17)."""
    return paper_tree_bytes(weights) / paper_one_vs_rest_bytes(n_labels, n_features)


def packed_tree_bytes(n_nodes: int, n_inner: int, n_weights: float, n_features: float) -> float:
    """The same in our layout: float32 weights, the features of each node once, and the nodes.

    ``child_ptr``, ``label`` and ``bias`` per node, ``feature_ptr`` and ``weight_ptr`` per inner node.
    """
    return 4.0 * n_weights + 4.0 * n_features + 12.0 * n_nodes + 16.0 * n_inner + 20


def against_one_vs_rest(tree: LabelTree, used_features: npt.ArrayLike, likeness: float = 1.0) -> dict[str, Any]:
    """Weights of a tree and bytes of one-vs-rest, in our layout and the paper's, and the ratios; with every weight.

    ``likeness``: weights of the tree that is meant over those of this one.
    """
    used = np.asarray(used_features, np.int64)
    n_labels, n_features, weights = tree.n_labels, int(used[0]), round(likeness * weights_of(tree, used))
    flat = packed_tree_bytes(n_labels + 1, 1, n_labels * n_features, n_features)
    own = packed_tree_bytes(tree.n_nodes, len(tree.inner), weights, likeness * float(used.sum()))
    return {
        "weights": weights,
        "one_vs_rest_bytes": round(flat),
        "ratio": own / flat,
        "paper_tree_bytes": paper_tree_bytes(weights),
        "paper_one_vs_rest_bytes": paper_one_vs_rest_bytes(n_labels, n_features),
        "paper_ratio": paper_ratio(weights, n_labels, n_features),
    }


def reduction_ratios(tree: LabelTree, used_features: npt.ArrayLike) -> F64:
    """Eq. (44): the features of each inner node over those of its parent; 1 for the root."""
    used = np.asarray(used_features, np.float64)
    parents = tree.inner_of[tree.parent[tree.inner[1:]]]
    return np.concatenate([[1.0], used[1:] / np.maximum(used[parents], 1.0)])


@dataclass(frozen=True)
class Level:
    """The inner nodes of one depth: how many, their children, weights (18), and mean reduction ratio (45)."""

    depth: int
    nodes: int
    children: int
    used_features: int
    weights: int
    alpha: float


def levels(tree: LabelTree, used_features: npt.ArrayLike) -> list[Level]:
    """A summary by depth; ``alpha`` is the mean of Eq. (44) weighted by children, Eq. (45)."""
    used, children = np.asarray(used_features, np.int64), _children(tree)
    ratios = reduction_ratios(tree, used)
    found = []
    for depth, part in enumerate(inner_levels(tree)):
        count = children[part]
        found.append(
            Level(
                depth=depth,
                nodes=len(count),
                children=int(count.sum()),
                used_features=int(used[part].sum()),
                weights=int(count @ used[part]),
                alpha=float(ratios[part] @ count / count.sum()),
            )
        )
    return found


def inner_levels(tree: LabelTree) -> list[slice]:
    """The inner nodes of each depth as slices of their numbers."""
    bounds = np.searchsorted(tree.inner, tree.level_ptr).tolist()
    parts = [slice(first, last) for first, last in pairwise(bounds)]
    return [part for part in parts if part.start < part.stop]


def _children(tree: LabelTree) -> npt.NDArray[np.int64]:
    return np.diff(tree.child_ptr)[tree.inner].astype(np.int64)


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise LabelwoodError(f"size: {message}")
