"""Twin of label_tree/block_solver.hpp: the classifiers of one inner node by dual coordinate descent.

    min_w  1/2 |w|^2 + C sum_i loss(y_i (w.x_i + offset))

Algorithm 1 of Hsieh et al. (2008) for the squared hinge, and its counterpart by Yu, Huang and Lin (2011) for
the logistic loss, with one weight vector per sibling. The twin solves each sibling on its own; the kernel
solves 16 side by side, which must not change the result.

    x_i      row i with its bias feature appended      y_i   +1 if row i is positive, else -1
    alpha_i  the dual variable of row i                q_i   |x_i|^2
    C        ``cost``                                  w     the weights of a sibling, the bias last
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .rng import Rng

Vector = npt.NDArray[Any]

_NO_ALPHA = -80.0  # the logit that stands for alpha = 0
_LANES = 16
_PARTIAL_PASSES = 2
_COARSE = 0.5


@dataclass(frozen=True)
class Options:
    """The parameters of the solver."""

    logistic: bool
    cost: float
    tolerance: float
    skip: float
    max_passes: int
    bias: float
    offset: float


class Sibling:
    """One classifier in training."""

    def __init__(self, X: Vector, positive: Vector, options: Options) -> None:
        self._options = options
        self._X = np.hstack([X, np.full((len(X), 1), options.bias)])
        self._y = np.where(positive, 1.0, -1.0)
        self._q = np.einsum("ij,ij->i", self._X, self._X)
        self.w = np.zeros(self._X.shape[1])
        self._no_alpha = _NO_ALPHA if options.logistic else 0.0
        self._dual = np.full(len(X), self._no_alpha)

    @property
    def held(self) -> Vector:
        """True for rows with alpha above 0."""
        return self._dual > self._no_alpha

    def visit(self, order: list[int]) -> tuple[bool, set[int]]:
        """Pass over these rows; return whether the sibling has converged, and the rows with an update."""
        o = self._options
        highest, lowest = -np.inf, np.inf
        moved = set()
        for i in order:
            margin = self._y[i] * (self.w @ self._X[i] + o.offset)
            gradient, change, dual = (self._logistic if o.logistic else self._squared_hinge)(i, margin)
            highest, lowest = max(highest, gradient), min(lowest, gradient)
            if abs(gradient) > o.skip * o.tolerance:
                self._dual[i] = dual
                self.w += self._y[i] * change * self._X[i]
                moved.add(int(i))
        # LIBLINEAR's stopping rules.
        gap = max(highest, -lowest) if o.logistic else highest - lowest
        return gap <= o.tolerance, moved

    def _squared_hinge(self, i: int, margin: float) -> tuple[float, float, float]:
        alpha, ridge = self._dual[i], 0.5 / self._options.cost
        gradient = margin - 1.0 + alpha * ridge
        projected = gradient if alpha > 0 else min(gradient, 0.0)
        updated = max(alpha - gradient / (self._q[i] + ridge), 0.0)
        return projected, updated - alpha, updated

    def _logistic(self, i: int, margin: float) -> tuple[float, float, float]:
        """One update. The dual variable is kept as its logit t: alpha = C sigmoid(t)."""
        cost, q, logit = self._options.cost, self._q[i], self._dual[i]
        alpha = cost * _sigmoid(logit)
        low, high = -margin - q * (cost - alpha), -margin + q * alpha
        for _ in range(80):  # bisection: t + margin + q (C sigmoid(t) - alpha) increases in t
            middle = 0.5 * (low + high)
            if middle + margin + q * (cost * _sigmoid(middle) - alpha) > 0:
                high = middle
            else:
                low = middle
        t = 0.5 * (low + high)
        return logit + margin, cost * _sigmoid(t) - alpha, t


def _sigmoid(t: float) -> float:
    return float(1.0 / (1.0 + np.exp(-t)))


def solve_block(X: Vector, positives: Vector, children: list[int], options: Options, seed: int) -> dict[int, Vector]:
    """Weights (bias last) of at most 16 children; ``positives`` is rows x children.

    The first passes visit the rows that are positive for any child. After that, a full pass over all rows is
    followed by at most two partial passes over the rows that had an update in the pass before, fewer if all
    siblings have converged. A sibling is finished only by a full pass. If the tolerance is 0.5 or more, full
    passes after the first skip the rows whose alpha is 0 for every sibling.
    """
    active = {child: Sibling(X, positives[:, child], options) for child in children}
    done: dict[int, Vector] = {}
    rng = Rng(seed, children[0])
    full, seen, partial, passes = False, False, 0, 0
    order = np.flatnonzero(positives[:, children].any(axis=1)).tolist()
    while active:
        passes += 1
        if full:
            trusting = seen and options.tolerance >= _COARSE
            held = np.any([sibling.held for sibling in active.values()], axis=0)
            order = np.flatnonzero(held | (not trusting)).tolist()
            seen = True
        rng.shuffle(order)
        settled, restless = True, set()
        for child in list(active):
            converged, moved = active[child].visit(order)
            settled &= converged
            restless |= moved
            if passes >= options.max_passes or (full and converged):
                done[child] = active.pop(child).w
        order = [row for row in order if row in restless]
        partial = 0 if full else partial + 1
        full = settled or not order or partial == _PARTIAL_PASSES
    return done


def solve_node(X: Vector, positives: Vector, options: Options, seed: int) -> dict[int, Vector]:
    """Solve all children that have a positive row, in blocks of about 16, frequent children first."""
    counts = positives.sum(axis=0)
    children = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c] > 0]
    n_blocks = -(-len(children) // _LANES)
    done: dict[int, Vector] = {}
    for block in range(n_blocks):
        chosen = children[len(children) * block // n_blocks : len(children) * (block + 1) // n_blocks]
        done |= solve_block(X, positives, chosen, options, seed)
    return done
