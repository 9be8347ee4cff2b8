"""Twin of forest/ldsm/grower.hpp and forest/ldsm/node.hpp: LdSM, Algorithms 1-5, Eq. 1, Definitions 1 and 2.

"LdSM: Logarithm-depth Streaming Multi-label Decision Trees" (Majzoubi and Choromanska, 2020). Line numbers in
comments count from the first statement of each printed algorithm. The paper's symbols:

    v      a node                                 M        arity, the children of a node
    l_v    label counts of the rows of v          C_v      their sum
    P_m    probability to go to child m           P_m^k    the same for rows of label k
    pi_k   share of label k in v                  J        the objective

The running probabilities are kept as sums, ``T[m] = C_v P_m`` and ``S[k][m] = l_v[k] P_m^k``. The objective
is multiplied by ``C_v``, and labels that the example does not have are left out, because they cancel.
Rounding is therefore the same as in the kernel, and so are ties. Weights and margins are in single precision;
margins are summed in the order of the columns, the bias first.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from .rng import Rng

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Row = tuple[npt.NDArray[np.int64], F32]  # columns and values

SENT_ABOVE = np.float32(0.5)
TINY = np.float32(1e-20)


@dataclass(frozen=True)
class Options:
    """The parameters of the method, and the sizes of the data."""

    n_features: int
    n_labels: int
    arity: int = 2
    max_nodes: int = 8000
    epochs: int = 10
    lambda_integrity: float = 2.0
    lambda_multiway: float = 1.0
    optimizer: str = "nag"
    learning_rate: float = 0.1
    weight_threshold: float = 0.0
    loss: str = "logistic"
    start_weights: float = 0.0
    first_of_ties: bool = False
    partial_splits: bool = False
    leaf_votes: bool = False
    shuffle_epoch: bool = True
    divide_by_rows: bool = True


@dataclass
class Node:
    """A node ``v`` of the growing tree."""

    rows: list[int]
    children: list[Node] = field(default_factory=list)
    weights: F32 | None = None  # [features + 1, M], the bias last
    split: tuple[float, float, float] | None = None  # J, balancedness and purity of the split
    running: float = 0.0  # J computed from the running probabilities


def objective(P: F64, P_given: F64, pi: F64, lambda_1: float, lambda_2: float) -> float:
    """J of Equation 1; ``P`` [M], ``P_given`` [K, M], ``pi`` [K]."""
    return balancing_term(P) + purity_term(P, P_given, pi, lambda_1, lambda_2)


def balancing_term(P: F64) -> float:
    """The first term of Equation 1."""
    return float(sum(abs(P[j] - P[k]) for j, k in combinations(range(len(P)), 2)))


def purity_term(P: F64, P_given: F64, pi: F64, lambda_1: float, lambda_2: float) -> float:
    """The other two terms: class integrity and the multi-way penalty."""
    integrity = sum(pi @ abs(P_given[:, j] - P_given[:, k]) for j, k in combinations(range(len(P)), 2))
    return float(-lambda_1 * integrity + lambda_2 * abs(P.sum() - 1))


def balancedness(P: F64) -> float:
    """Definition 1."""
    return float(abs(P - P.sum() / len(P)).max())


def purity(P_given: F64, pi: F64) -> float:
    """Definition 2."""
    others = P_given.sum(axis=1, keepdims=True) - P_given
    return float((pi @ np.minimum(P_given, others)).sum() / P_given.shape[1])


def histogram(Y: list[list[int]], rows: list[int], n_labels: int) -> F64:
    """The label histogram of some rows (UpdateHist of Algorithm 1)."""
    return np.bincount([k for i in rows for k in Y[i]], minlength=n_labels).astype(np.float64)


def probabilities(node: F64, children: list[F64]) -> tuple[F64, F64, F64]:
    """``P``, ``P_given`` and ``pi`` of a split, from the label histograms of a node and of its children."""
    present = node > 0
    pi = node[present] / node.sum()
    P_given = np.stack([child[present] / node[present] for child in children], axis=1)
    return pi @ P_given, P_given, pi


def build_tree(X: list[Row], Y: list[list[int]], o: Options, rng: Rng) -> Node:
    """Algorithm 1. Rows without labels are dropped. A node with one row or with one label stays a leaf."""
    rows = [i for i in range(len(Y)) if Y[i]]
    rng.shuffle(rows)
    root = Node(rows)  # lines 1-5
    queue = [(0, 0, root)]  # line 7: highest priority first, then the oldest
    t = made = 1
    while queue and t < o.max_nodes:  # line 8
        v = heapq.heappop(queue)[2]
        T, S, C = train_regressors(v, X, Y, o, rng)
        parts = create_children(v, X, o)
        if not is_split(parts, len(v.rows), o):
            v.weights = None  # a child would repeat its parent: no split
            continue
        v.running = _running_objective(T, S, C, o)
        whole, hists = histogram(Y, v.rows, o.n_labels), [histogram(Y, part, o.n_labels) for part in parts]
        P, P_given, pi = probabilities(whole, hists)
        J = objective(P, P_given, pi, o.lambda_integrity, o.lambda_multiway)
        v.split = J, balancedness(P), purity(P_given, pi)
        for part, hist in zip(parts, hists, strict=True):  # lines 12-17
            child = Node(part)
            v.children.append(child)
            priority = int(hist.sum() - hist.max())
            if priority > 0 and len(part) > 1:
                heapq.heappush(queue, (-priority, made, child))
            made += 1
        t += o.arity  # line 18
    return root


def is_split(parts: list[list[int]], n_rows: int, o: Options) -> bool:
    """True if the children are not their parent again; as printed, if two of them have rows."""
    if o.partial_splits:
        return sum(bool(part) for part in parts) > 1
    return all(part and len(part) < n_rows for part in parts)


def train_regressors(
    v: Node, X: list[Row], Y: list[list[int]], o: Options, rng: Rng
) -> tuple[list[float], dict[int, list[float]], float]:
    """Algorithm 2: set the weights of ``v``; return the sums ``T`` and ``S``, and ``C_v``."""
    C, steps = 0.0, Regressors(o, rng)  # lines 1-5
    T: list[float] = [0.0] * o.arity
    S: dict[int, list[float]] = {}
    order = list(v.rows)
    for _ in range(o.epochs):  # line 6
        if o.shuffle_epoch:
            rng.shuffle(order)
        for i in order:  # line 7
            C += len(Y[i])  # lines 8-10
            for k in Y[i]:
                S.setdefault(k, [0.0] * o.arity)
            margins = steps.see(X[i])
            target = optimize_objective(T, [S[k] for k in Y[i]], C, o, rng)  # line 11
            pred = steps.train(X[i], margins, target)  # lines 12-14
            pred = np.clip(pred, np.float32(0), np.float32(1))  # line 15
            for m in range(o.arity):  # lines 16-20
                T[m] += len(Y[i]) * float(pred[m])
                for k in Y[i]:
                    S[k][m] += float(pred[m])
    v.weights = steps.pruned()
    return T, S, C


def optimize_objective(T: list[float], S: list[list[float]], C: float, o: Options, rng: Rng) -> list[int]:
    """Algorithm 3: the assignment of least J, ties broken at random; ``S`` has the labels of the example."""
    size, pairs = float(len(S)), list(combinations(range(o.arity), 2))
    best: list[list[int]] = []
    lowest = math.inf
    for s in range(1, 2**o.arity):  # line 2
        sent = [(s >> m) & 1 for m in range(o.arity)]
        balance = integrity = 0.0
        for j, k in pairs:
            gap = sent[j] - sent[k]
            balance += abs(T[j] - T[k] + size * gap)
            own = 0.0
            for label in S:
                own += abs(label[j] - label[k] + gap)
            integrity += own
        multiway = abs(sum(T) + size * sum(sent) - C)
        J = balance - o.lambda_integrity * integrity + o.lambda_multiway * multiway
        if lowest > J:  # lines 19-24
            lowest, best = J, []
        if lowest == J:
            best.append(sent)
    return best[rng.below(len(best)) if len(best) > 1 and not o.first_of_ties else 0]


class Regressors:
    """The M regressors of a node and their optimizer; NAG is Algorithm 2 of Ross et al. (2013)."""

    def __init__(self, o: Options, rng: Rng) -> None:
        self._o, self._rng = o, rng
        self.weights = np.zeros((o.n_features + 1, o.arity), np.float32)
        self._squares = np.zeros_like(self.weights)
        self._scale = np.zeros(o.n_features + 1, np.float32)
        self._scale[-1] = 1
        self._visits, self._norms = 0, 0.0
        self._draw(-1)

    def see(self, row: Row) -> F32:
        """The margins before the step. NAG scales a weight down if its feature is larger than ever before."""
        self._visits += 1
        self._norms += 1.0
        norms, margins = 0.0, self.weights[-1].copy()
        for column, x in zip(*row, strict=True):
            if abs(x) > self._scale[column]:
                if self._scale[column] == 0:
                    self._draw(column)
                elif self._o.optimizer == "nag":
                    self.weights[column] *= self._scale[column] / abs(x)
                self._scale[column] = abs(x)
            ratio = x / self._scale[column]
            norms += float(ratio * ratio)
            margins += x * self.weights[column]
        self._norms += norms
        return margins

    def train(self, row: Row, margins: F32, target: list[int]) -> F32:
        """Take one step towards the targets on one row; return the margins after it."""
        predicted = {"squared": float, "clamped": lambda z: min(max(float(z), 0.0), 1.0), "logistic": _sigmoid}
        values = [predicted[self._o.loss](z) for z in margins]
        gradient = np.array([v - t for v, t in zip(values, target, strict=True)], np.float32)
        rate = np.float32(self._o.learning_rate)
        if self._o.optimizer == "nag":
            rate = np.float32(float(rate) * math.sqrt(self._visits / self._norms))
        self._move(-1, np.float32(1), rate, gradient)
        after = self.weights[-1].copy()
        for column, x in zip(*row, strict=True):
            self._move(column, x, rate, gradient)
            after += x * self.weights[column]
        return after

    def _draw(self, column: int) -> None:
        if self._o.start_weights:
            drawn = [np.float32(2.0 * self._rng.uniform() - 1.0) for _ in range(self._o.arity)]
            self.weights[column] = np.float32(self._o.start_weights) * np.array(drawn)

    def pruned(self) -> F32:
        """The weights without those too small to change a margin by the threshold; the bias is kept."""
        small = abs(self.weights) * self._scale[:, None] < np.float32(self._o.weight_threshold)
        small[-1] = False
        return np.where(small, np.float32(0), self.weights)

    def _move(self, column: int, x: np.float32, rate: np.float32, gradient: F32) -> None:
        g = gradient * x
        if self._o.optimizer == "sgd":
            self.weights[column] -= rate * g
            return
        self._squares[column] += g * g
        scale = self._scale[column] if self._o.optimizer == "nag" else np.float32(1)
        self.weights[column] -= rate * g / (scale * np.sqrt(self._squares[column] + TINY))


def _sigmoid(z: Any) -> float:
    return 1.0 / (1.0 + math.exp(min(-float(z), 709.0)))


def _running_objective(T: list[float], S: dict[int, list[float]], C: float, o: Options) -> float:
    l_v = np.ones(len(S))  # the sums include the counts: pi_k |P_j^k - P_l^k| = |S_j^k - S_l^k| / C_v
    P, P_given = np.array(T) / C, np.array(list(S.values()))
    return objective(P, P_given, l_v / C, o.lambda_integrity, o.lambda_multiway)


def margins(v: Node, row: Row) -> F32:
    """``w_m^T x`` for every m."""
    assert v.weights is not None
    total = v.weights[-1].copy()
    for column, x in zip(*row, strict=True):
        total += x * v.weights[column]
    return total


def directions(scores: F32) -> list[int]:
    """The children with a score above 0.5; if there are none, the first with the best score."""
    sent = [m for m, score in enumerate(scores) if score > SENT_ABOVE]
    return sent or [int(np.argmax(scores))]


def create_children(v: Node, X: list[Row], o: Options) -> list[list[int]]:
    """Algorithm 4: the rows of each child."""
    parts: list[list[int]] = [[] for _ in range(o.arity)]
    for i in v.rows:
        for m in directions(margins(v, X[i])):
            parts[m].append(i)
    return parts


def leaf_values(v: Node, Y: list[list[int]], o: Options) -> F64:
    """The histogram of a leaf, divided by its sum (Algorithm 5) or by the number of rows."""
    counts = histogram(Y, v.rows, o.n_labels)
    normalised: F64 = counts / max(len(v.rows) if o.divide_by_rows else counts.sum(), 1)
    return normalised


def get_leaves(v: Node, row: Row) -> list[Node]:
    """GetLeaves of Algorithm 5."""
    if not v.children:
        return [v]
    return [leaf for m in directions(margins(v, row)) for leaf in get_leaves(v.children[m], row)]


def predict(trees: list[Node], row: Row, Y: list[list[int]], o: Options) -> F64:
    """Algorithm 5 for an ensemble: average the leaves of each tree, then the trees, or all leaves at once."""
    if o.leaf_votes:
        every = [leaf_values(v, Y, o) for tree in trees for v in get_leaves(tree, row)]
        summed: F64 = np.mean(every, axis=0)
        return summed
    means: Any = [np.mean([leaf_values(v, Y, o) for v in get_leaves(tree, row)], axis=0) for tree in trees]
    averaged: F64 = np.mean(means, axis=0)
    return averaged
