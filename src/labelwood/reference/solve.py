"""Twin of ``solve.hpp``: the classifiers of one inner node by dual coordinate descent.

    min_w  1/2 |w|^2 + C sum_i loss(y_i (w.x_i + offset))

Algorithm 1 of Hsieh et al. (2008) for the squared hinge and its counterpart of Yu, Huang and Lin (2011) for the
logistic loss, one weight vector per sibling. Every sibling is solved on its own here; the kernel solves 16 side by
side, which must not change the result.

    x_i  a row with its bias feature appended     alpha_i  its dual variable      q_i = |x_i|^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.reference.rng import Rng

Vector = npt.NDArray[Any]

_NO_ALPHA = -80.0  # a logit whose alpha is 0


@dataclass(frozen=True)
class Options:
    """What the solver is told."""

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
        self._dual = np.full(len(X), _NO_ALPHA if options.logistic else 0.0)
        self.passes = 0

    def visit_all(self, order: Vector) -> bool:
        """One pass over the rows in this order; true when the sibling is done."""
        o = self._options
        highest, lowest = -np.inf, np.inf
        for i in order:
            margin = self._y[i] * (self.w @ self._X[i] + o.offset)
            gradient, change, dual = (self._logistic if o.logistic else self._squared_hinge)(i, margin)
            highest, lowest = max(highest, gradient), min(lowest, gradient)
            if abs(gradient) > o.skip * o.tolerance:
                self._dual[i] = dual
                self.w += self._y[i] * change * self._X[i]
        self.passes += 1
        gap = max(highest, -lowest) if o.logistic else highest - lowest
        return self.passes >= o.max_passes or gap <= o.tolerance

    def _squared_hinge(self, i: int, margin: float) -> tuple[float, float, float]:
        alpha, ridge = self._dual[i], 0.5 / self._options.cost
        gradient = margin - 1.0 + alpha * ridge
        projected = gradient if alpha > 0 else min(gradient, 0.0)
        updated = max(alpha - gradient / (self._q[i] + ridge), 0.0)
        return projected, updated - alpha, updated

    def _logistic(self, i: int, margin: float) -> tuple[float, float, float]:
        """The dual variable is kept as its logit t, alpha = C sigmoid(t); the optimum solves one equation in t."""
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


def solve_group(X: Vector, positives: Vector, children: list[int], options: Options, seed: int) -> dict[int, Vector]:
    """Weights (bias last) of the children; ``positives`` is rows x children. New siblings join as others finish."""
    lanes = 4 if len(children) <= 4 else 8 if len(children) <= 8 else 16
    waiting = list(children)
    active: dict[int, Sibling] = {}
    done: dict[int, Vector] = {}
    order = np.arange(len(X))
    rng = Rng(seed, children[0])
    while waiting or active:
        while waiting and len(active) < lanes:
            child = waiting.pop(0)
            active[child] = Sibling(X, positives[:, child], options)
        rng.shuffle(order)
        for child in list(active):
            if active[child].visit_all(order):
                done[child] = active.pop(child).w
    return done
