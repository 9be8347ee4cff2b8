"""Twin of forest/graph/label_graph.hpp, forest/graph/cut.hpp and forest/graph/grower.hpp: GraphForest (GPT).

"Learning Extreme Multi-label Tree-classifier via Nearest Neighbor Graph Partitioning" (Tagami, 2017). The
paper's symbols:

    x_i, y_i   features and labels of row i; X and Y are dense arrays of the rows of a node
    N_i        the k nearest neighbours of row i by labels, ``graph[i]``
    n_th       a label with n_j >= n_th rows in the node is left out of the graph
    S-         the negatives: rows drawn at random from the node
    c_i        the side of row i under the current w: +1 if w.x_i >= 0, else -1
    w          the hyperplane
    z, n       its state in FTRL-Proximal: n sums squared gradients, w follows from z

The paper leaves three points open; this is how they are resolved. w starts at zero, at the difference of two
random rows, or at random. The gradients of an example's neighbours and negatives are taken at the same w and
applied as one step. The penalty is counted once, in the objective of FTRL-Proximal. Similarities are computed
in single precision, as in the kernel, so that ties are the same; everything else is in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .rng import Rng, mix64

F64 = npt.NDArray[np.float64]
Graph = list[list[int]]

_SEPARATIONS = 8


@dataclass(frozen=True)
class Options:
    """The parameters of :class:`labelwood.GraphForest` that shape a tree."""

    n_neighbors: int = 10
    n_negatives: int = 10
    match_negatives: bool = False
    fill_neighbors: bool = False
    label_threshold: int = 50
    graph: str = "tail"
    epochs: int = 3
    l1: float = 1.0
    learning_rate: float = 0.1
    beta: float = 1.0
    start: str = "zero"
    tolerance: float = 0.0
    feature_rows: int = 1
    max_leaf: int = 10


def label_graph(
    Y: npt.NDArray[Any], k: int, threshold: int, kind: str, fill: bool = False
) -> tuple[Graph, list[list[float]]]:
    """The neighbours of every row and their similarity; the threshold doubles until a row has neighbours."""
    graph, alike = _connect(Y, k, threshold, kind, fill)
    while not any(graph) and threshold <= Y.sum(axis=0).max(initial=0) and len(Y) > 1:
        threshold *= 2
        graph, alike = _connect(Y, k, threshold, kind, fill)
    return graph, alike


def _connect(Y: npt.NDArray[Any], k: int, threshold: int, kind: str, fill: bool) -> tuple[Graph, list[list[float]]]:
    n = len(Y)
    sizes = Y.sum(axis=0)
    idf = np.log(np.float32(n) / np.maximum(sizes, 1).astype(np.float32)).astype(np.float32)
    gain = np.ones(Y.shape[1], np.float32) if kind == "tail" else idf * idf
    if kind == "tail":
        norm = Y.sum(axis=1).astype(np.float32)
    else:
        norm = np.sqrt([sum(gain[np.flatnonzero(row)], np.float32(0)) for row in Y], dtype=np.float32)
    graph, alike = [], []
    for i in range(n):
        near: list[int] = []
        likely: list[float] = []
        own = np.flatnonzero(Y[i])
        rounds = [own[sizes[own] < threshold]] if kind == "tail" else [own]
        for labels in [*rounds, *([own[sizes[own] >= threshold]] if kind == "tail" and fill else [])]:
            shared = np.zeros(n, np.float32)
            for label in labels:
                posting = np.flatnonzero(Y[:, label])
                place = int(np.searchsorted(posting, i))
                steps = min(len(posting), threshold) - 1
                shared[np.roll(posting, -place)[1 : steps + 1]] += gain[label]
            shared[near] = 0
            found = np.flatnonzero(shared > 0)
            likeness = shared[found] / norm[found]
            best = np.lexsort([(found - i) % n, -likeness])[: k - len(near)]
            near += found[best].tolist()
            likely += (likeness[best] / norm[i]).tolist()
        graph.append(near)
        alike.append(likely)
    return graph, alike


def sides(X: F64, w: F64, bias: float = 0.0) -> npt.NDArray[np.bool_]:
    """True where c_i = +1."""
    return X @ w + bias >= 0


def objective(X: F64, graph: Graph, w: F64, negatives: list[list[int]], l1: float) -> float:
    """The paper's objective, which the cut maximises, summed over the rows that have neighbours."""
    margin = X @ w
    total = 0.0
    for i, near in enumerate(graph):
        if near:
            c = 1.0 if margin[i] >= 0 else -1.0
            total -= np.logaddexp(0, -c * margin[near]).sum()
            total -= np.logaddexp(0, c * margin[negatives[i]]).sum()
    return float(total - l1 * np.abs(w).sum())


def weights_of(z: F64, n: F64, o: Options) -> F64:
    """The hyperplane w that follows from FTRL-Proximal's state."""
    size = (np.abs(z) - o.l1) / ((o.beta + np.sqrt(n)) / o.learning_rate)
    return np.where(np.abs(z) > o.l1, -np.sign(z) * size, 0.0)


def first_weights(X: F64, start: str, rng: Rng) -> F64:
    """The hyperplane from which the optimisation starts."""
    w = np.zeros(X.shape[1])
    if start == "rows" and len(X) > 1:
        a, b = rng.below(len(X)), rng.below(len(X) - 1)
        w += X[a] - X[b if b < a else b + 1]
    elif start == "gaussian":
        for f in np.flatnonzero(X.any(axis=0)):
            radius = np.sqrt(-2 * np.log(1 - rng.uniform()))
            w[f] = radius * np.cos(2 * np.pi * rng.uniform())
    return w


def cut(X: F64, graph: Graph, o: Options, rng: Rng) -> F64:
    """Learn the hyperplane that cuts a graph, from features that at least ``feature_rows`` rows have."""
    X = X * ((X != 0).sum(axis=0) >= o.feature_rows)
    w = first_weights(X, o.start, rng)
    z = np.where(w == 0, 0.0, -w * o.beta / o.learning_rate - np.copysign(o.l1, w))
    n = np.zeros_like(w)
    order = [i for i, near in enumerate(graph) if near]
    before = sides(X, w)
    for _ in range(o.epochs if order else 0):
        rng.shuffle(order)
        for i in order:
            drawn = min(o.n_negatives, len(graph[i])) if o.match_negatives else o.n_negatives
            negatives = [rng.below(len(X)) for _ in range(drawn)]
            c = 1.0 if X[i] @ w >= 0 else -1.0
            near, far = X[graph[i]], X[negatives]
            gradient = -(c / (1 + np.exp(c * (near @ w)))) @ near + (c / (1 + np.exp(-c * (far @ w)))) @ far
            z += gradient - (np.sqrt(n + gradient**2) - np.sqrt(n)) / o.learning_rate * w
            n += gradient**2
            w = weights_of(z, n, o)
        after = sides(X, w)
        moved = int((before != after).sum())
        before = after
        if moved <= o.tolerance * len(X):
            break
    return w


@dataclass
class Node:
    """A node of the twin's tree: a leaf's ``values``, or ``w``, ``bias`` and the two children."""

    rows: npt.NDArray[np.int64]
    values: F64 | None = None
    w: F64 | None = None
    bias: float = 0.0
    children: tuple[Node, Node] | None = None


def grow(X: F64, Y: npt.NDArray[Any], o: Options, *, seed: int, tree: int) -> Node:
    """One tree of the forest."""
    return _grow(X, Y, np.arange(len(X)), o, mix64(seed ^ mix64(tree)))


def _grow(X: F64, Y: npt.NDArray[Any], rows: npt.NDArray[np.int64], o: Options, key: int) -> Node:
    if len(rows) > o.max_leaf and not (Y[rows] == Y[rows[0]]).all():
        w, bias = _split(X[rows], Y[rows], o, key)
        side = sides(X[rows], w, bias)
        if side.any() and not side.all():
            first = _grow(X, Y, rows[side], o, mix64(key + 1))
            return Node(rows, w=w, bias=bias, children=(first, _grow(X, Y, rows[~side], o, mix64(key + 2))))
    return Node(rows, values=Y[rows].mean(axis=0))


def _split(X: F64, Y: npt.NDArray[Any], o: Options, key: int) -> tuple[F64, float]:
    graph, _ = label_graph(Y, o.n_neighbors, o.label_threshold, o.graph, o.fill_neighbors)
    w, bias = cut(X, graph, o, Rng(key)), 0.0
    rng = Rng(key, 1)
    for _ in range(_SEPARATIONS):
        side = sides(X, w, bias)
        if side.any() and not side.all():
            break
        a, b = rng.below(len(X)), rng.below(len(X))
        w, bias = X[a] - X[b], float(X[b] @ X[b] - X[a] @ X[a]) / 2
        bias = 0.0 if abs(bias) < 1e-5 * (X[a] @ X[a]) else bias
    return w, bias


def kept_pairs(
    forest: Any,
    tree: int,
    X: Any,
    graph_of: Callable[[npt.NDArray[np.int64]], tuple[Any, Any]],
    side_of: Callable[[Any, npt.NDArray[np.bool_]], npt.NDArray[np.bool_]],
) -> npt.NDArray[np.int64]:
    """For each level of a tree, count the neighbour pairs, and the pairs whose rows are on the same side.

    ``X`` holds the prepared training rows (dense or scipy). ``graph_of(rows)`` gives (ptr, neighbors) of a
    node. ``side_of(X, split)`` gives the sides to judge, from a node's rows and their true sides.
    """
    counts, members = [], {tree: np.arange(X.shape[0])}
    while members:
        total = kept = 0
        below = {}
        for node, own in members.items():
            first, last = forest.child_ptr[node], forest.child_ptr[node + 1]
            if first == last:
                continue
            columns, weights = forest.vector(first)
            rows = X[own]
            split = rows[:, columns] @ weights.astype(np.float64) + forest.bias[first] >= 0
            below[first], below[first + 1] = own[split], own[~split]
            ptr, near = graph_of(own)
            side = side_of(rows, split)
            kept += int((np.repeat(side, np.diff(ptr)) == side[near]).sum())
            total += len(near)
        counts.append((total, kept))
        members = below
    return np.array(counts, np.int64)
