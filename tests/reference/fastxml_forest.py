"""Twin of forest/fastxml: FastXML, and PfastreXML by its label weights.

"FastXML: a fast, accurate and stable tree-classifier for extreme multi-label learning" (Prabhu and Varma, 2014), and
"Extreme multi-label loss functions" (Jain, Prabhu and Varma, 2016). The papers' symbols:

    x_i, y_i   features and labels of row i; X and Y are dense arrays of the rows of a node
    delta_i    the side of row i: +1 or -1
    r+, r-     the label rankings of the two sides
    I(y_i)     1 / sum over l <= |y_i| of 1 / log(1 + l): the inverse of the best discounted gain of row i
    g_l        the weight of label l: 1, or its inverse propensity
    w          the separator; its last entry belongs to the bias feature
    C          C_delta(+1) = C n / n+, C_delta(-1) = C n / n-: both sides weigh the same

A node minimises |w|_1 + sum_i C_delta(delta_i) log(1 + exp(-delta_i w.x_i)) - sum_i nDCG(delta_i): rankings and sides
in turn until no side changes, then w. Later rounds begin with the sides that the present w favours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .rng import Rng, mix64

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_LEAST_RISE = 1e-5  # of the mean nDCG, below which the sides have converged
_LEAST_GAP = 1e-10  # between the gains of the two sides; below it a row stays where it is
_MOST_TURNS = 100
_NEWTON_STEPS = 30
_PASSES = 10  # of coordinate descent for one Newton step
_INNER = 0.1  # share of the violation at which these passes end
_ARMIJO = 0.01
_HALVINGS = 20
_TINY = 1e-12
_FARTHEST = 10.0  # a coordinate's step


@dataclass(frozen=True)
class Options:
    """The parameters of :class:`labelwood.FastXmlForest` that shape a tree."""

    max_leaf: int = 10
    leaf_size: int = 100
    C: float = 1.0
    bias: float = 1.0
    rounds: int = 1
    tolerance: float = 0.01


def discount(rank: int) -> float:
    """1 / log(1 + r) of the rank r = 1, 2, ...; ``rank`` counts from 0."""
    return 1.0 / math.log(2.0 + rank)


def ideal(n_labels: int) -> float:
    """I(y) of a row with this many labels."""
    total = 0.0
    for rank in range(n_labels):
        total += discount(rank)
    return 1.0 / total


def ranking(Y: npt.NDArray[Any], rows: I64, weights: F64) -> dict[int, int]:
    """The rank of each label of the node that maximises the summed nDCG of these rows: by gain, then by id."""
    gain = dict.fromkeys(np.flatnonzero(Y.any(axis=0)).tolist(), 0.0)
    for i in rows:
        labels = np.flatnonzero(Y[i])
        for label in labels.tolist():
            gain[label] += ideal(len(labels)) * weights[label]
    order = sorted(gain, key=lambda label: (-gain[label], label))
    return {label: rank for rank, label in enumerate(order)}


def gain_of(labels: I64, ranks: dict[int, int], weights: F64) -> float:
    """The nDCG of one row under a ranking."""
    total = 0.0
    for label in labels.tolist():
        total += weights[label] * discount(ranks[label])
    return total * ideal(len(labels))


def assign(
    Y: npt.NDArray[Any], weights: F64, positive: npt.NDArray[np.bool_], loss: tuple[F64, F64]
) -> tuple[npt.NDArray[np.bool_], list[float]]:
    """Rankings and sides in turn; ``loss`` holds the log loss of each row on the positive and the negative side.

    Returns the sides and the objective after each turn, a mean over rows.
    """
    positive = positive.copy()
    labels = [np.flatnonzero(row) for row in Y]
    history: list[float] = []
    for _ in range(_MOST_TURNS):
        plus = ranking(Y, np.flatnonzero(positive), weights)
        minus = ranking(Y, np.flatnonzero(~positive), weights)
        moved, total = 0, 0.0
        for i, own in enumerate(labels):
            good = gain_of(own, plus, weights) - loss[0][i]
            bad = gain_of(own, minus, weights) - loss[1][i]
            side = positive[i] if abs(good - bad) <= _LEAST_GAP else good > bad
            moved += int(side != positive[i])
            positive[i] = side
            total += max(good, bad)
        history.append(total / len(Y))
        if moved == 0 or (len(history) > 1 and history[-1] - history[-2] < _LEAST_RISE):
            break
    return positive, history


def costs(positive: npt.NDArray[np.bool_], C: float) -> tuple[float, float]:
    """C_delta(+1) and C_delta(-1)."""
    n, n_positive = len(positive), int(positive.sum())
    return C * n / n_positive, C * n / (n - n_positive)


def objective(X: F64, positive: npt.NDArray[np.bool_], w: F64, C: float) -> float:
    """|w|_1 and the weighted log loss, which the separator minimises."""
    up, down = costs(positive, C)
    margin = X @ w
    loss = up * np.logaddexp(0, -margin[positive]).sum() + down * np.logaddexp(0, margin[~positive]).sum()
    return float(np.abs(w).sum() + loss)


def violation(w: float, gradient: float) -> float:
    """The distance of 0 from the subdifferential of one coordinate."""
    if w == 0:
        return max(abs(gradient) - 1.0, 0.0)
    return abs(gradient + math.copysign(1.0, w))


def separate(X: F64, positive: npt.NDArray[np.bool_], w: F64, o: Options, rng: Rng) -> F64:
    """L1-regularised logistic regression: Newton steps, each found by coordinate descent on the active features.

    Yuan, Ho and Lin, An improved GLMNET for L1-regularized logistic regression, JMLR 2012. A feature is active if its
    weight is not 0 or its gradient exceeds the penalty.
    """
    w = w.copy()
    cost = np.where(positive, *costs(positive, o.C))
    y = np.where(positive, 1.0, -1.0)
    margin = X @ w
    start = 0.0
    for step in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-margin))
        curvature = cost * p * (1 - p)
        gradient = (cost * (p - positive)) @ X
        wrong = [violation(w[j], gradient[j]) for j in range(len(w))]
        total = sum(wrong)
        start = total if step == 0 else start
        if total <= o.tolerance * start:
            break
        active = [j for j in range(len(w)) if w[j] != 0 or wrong[j] > 0]
        bend = (curvature @ X**2) + _TINY
        target, moved = w.copy(), np.zeros(len(X))
        for _ in range(_PASSES):
            rng.shuffle(active)
            left = 0.0
            for j in active:
                slope = gradient[j] + (curvature * moved) @ X[:, j]
                left += violation(target[j], slope)
                if slope + 1 < bend[j] * target[j]:
                    to = target[j] - (slope + 1) / bend[j]
                elif slope - 1 > bend[j] * target[j]:
                    to = target[j] - (slope - 1) / bend[j]
                else:
                    to = 0.0
                to = min(max(to, target[j] - _FARTHEST), target[j] + _FARTHEST)
                moved += X[:, j] * (to - target[j])
                target[j] = to
            if left <= _INNER * total:
                break
        fall = gradient @ (target - w) + np.abs(target).sum() - np.abs(w).sum()
        before = cost @ np.logaddexp(0, -y * margin)
        for halving in range(_HALVINGS):
            share = 0.5**halving
            new = target if halving == 0 else w + share * (target - w)
            change = (
                np.abs(new).sum() - np.abs(w).sum() + cost @ np.logaddexp(0, -y * (margin + share * moved)) - before
            )
            if change <= _ARMIJO * share * fall:
                break
        else:
            break
        w, margin = new.copy(), margin + share * moved
    return w


@dataclass
class Node:
    """A node of the twin's tree: a leaf's ``values``, or ``w`` (the bias last) and the two children."""

    rows: I64
    values: F64 | None = None
    w: F64 | None = None
    children: tuple[Node, Node] | None = None


def grow(X: F64, Y: npt.NDArray[Any], weights: F64, o: Options, *, seed: int, tree: int) -> Node:
    """One tree of the forest."""
    wide = np.hstack([X, np.full((len(X), 1), o.bias)])
    return _grow(wide, Y, weights, np.arange(len(X)), o, mix64(seed ^ mix64(tree)))


def _grow(X: F64, Y: npt.NDArray[Any], weights: F64, rows: I64, o: Options, key: int) -> Node:
    if len(rows) > o.max_leaf and not (Y[rows] == Y[rows[0]]).all():
        w = split(X[rows], Y[rows], weights, o, Rng(key))
        side = X[rows] @ w >= 0
        if side.any() and not side.all():
            first = _grow(X, Y, weights, rows[side], o, mix64(key + 1))
            return Node(rows, w=w, children=(first, _grow(X, Y, weights, rows[~side], o, mix64(key + 2))))
    return Node(rows, values=leaf(Y[rows], weights, o.leaf_size))


def split(X: F64, Y: npt.NDArray[Any], weights: F64, o: Options, rng: Rng) -> F64:
    """The separator of a node; all zero if the rows could not be divided."""
    positive = np.array([rng.below(2) == 1 for _ in range(len(X))])
    w, nothing = np.zeros(X.shape[1]), np.zeros(len(X))
    loss = nothing, nothing
    for done in range(o.rounds):
        before = positive
        positive, _ = assign(Y, weights, positive, loss)
        if positive.all() or not positive.any() or (done > 0 and (positive == before).all()):
            break
        w = separate(X, positive, w, o, rng)
        margin, (up, down) = X @ w, costs(positive, o.C)
        loss = up * np.logaddexp(0, -margin), down * np.logaddexp(0, margin)
    return w


def leaf(Y: npt.NDArray[Any], weights: F64, leaf_size: int) -> F64:
    """The weighted mean label vector, relative to the largest weight; the largest entries are kept, ties by id."""
    values = Y.mean(axis=0) * weights / weights.max()
    dropped = np.lexsort([np.arange(len(values)), -values])[leaf_size or len(values) :]
    values[dropped] = 0
    return values
