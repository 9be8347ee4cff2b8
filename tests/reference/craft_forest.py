"""Twin of forest/craft/grower.hpp and the files it includes: CRAFTML, Algorithms 1 and 2.

"CRAFTML, an Efficient Clustering-based Random Forest for Extreme Multi-label Learning" (Siblini, Kuntz and
Meyer, 2018). The paper's symbols:

    n_s     rows in the sample of a node      k        arity
    n_leaf  max_leaf                          i        rounds of k-means
    P_x     projection of the features        d'_x     its number of columns, ``x_columns``
    P_y     projection of the labels          d'_y     its number of columns, ``y_columns``

Sums run in the order of rows and entries, so that ties are broken as in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .rng import Rng, mix64
from .routed_forest import in_order, largest_share, projection_matrix

F64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer[Any]]
Entries = list[tuple[int, float]]

_MASK = 2**64 - 1
_SAME = 1e-9
_ATTEMPTS = 3
_FEATURES, _LABELS, _DRAWS = 1, 2, 3


@dataclass(frozen=True)
class Options:
    """The parameters of the method, in the paper's order."""

    k: int
    n_leaf: int
    n_s: int
    rounds: int
    projection: str
    x_columns: int
    y_columns: int
    x_per_node: bool
    y_per_node: bool
    cosine: bool
    centroid_share: float
    centroid_least: int
    centroid_size: int
    centroid_rows: int
    seed: int


@dataclass
class Node:
    """A node of the grown tree: ``vector`` and ``bias`` are how its parent scores it."""

    vector: dict[int, float] = field(default_factory=dict)
    bias: float = 0.0
    rows: list[int] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    mean: F64 | None = None


def place_seed(seed: int, space: int, tree: int, node: int) -> int:
    """The seed of one kind of random choice at a node; node 0 is used for choices made once per tree."""
    return mix64(mix64((seed + space) & _MASK) ^ mix64((tree << 32) | node))


def grow(X: npt.NDArray[np.float32], Y: npt.NDArray[Any], options: Options, tree: int) -> Node:
    """Algorithm 1, trainTree, with a queue instead of recursion; nodes are numbered breadth-first."""
    root = Node(rows=list(range(len(X))))
    queue = [root]
    number = 0
    while number < len(queue):
        node = queue[number]  # line 1
        divided = None if stops(X, Y, node.rows, options) else divide(X, Y, node.rows, options, (tree, number))
        if divided is not None:  # lines 2-3
            node.children = divided  # lines 4-5
            queue += divided  # lines 6-8
        else:
            node.mean = Y[node.rows].astype(np.float64).mean(axis=0)  # line 10
        number += 1
    return root


def stops(X: npt.NDArray[Any], Y: npt.NDArray[Any], rows: list[int], options: Options) -> bool:
    """The stopping rules: (i) few rows, (ii) equal features, (iii) equal labels."""
    few = len(rows) <= options.n_leaf
    return few or bool((X[rows] == X[rows[0]]).all()) or bool((Y[rows] == Y[rows[0]]).all())


def divide(
    X: npt.NDArray[Any], Y: npt.NDArray[Any], rows: list[int], options: Options, place: tuple[int, int]
) -> list[Node] | None:
    """Algorithm 2, trainNodeClassifier, and the split it gives; None if no attempt divides the rows.

    ``place`` is the pair of tree number and node number.
    """
    tree, number = place
    x_seed = place_seed(options.seed, _FEATURES, tree, number if options.x_per_node else 0) >> 32
    y_seed = place_seed(options.seed, _LABELS, tree, number if options.y_per_node else 0) >> 32
    x_projected = projector(options.projection, X.shape[1], options.x_columns, x_seed)
    y_projected = projector(options.projection, Y.shape[1], options.y_columns, y_seed)
    seen = {row: x_projected(X[row]) for row in rows}
    for attempt in range(_ATTEMPTS):
        rng = Rng(place_seed(options.seed, _DRAWS, tree, number), attempt)
        sample = [rows[i] for i in sample_rows(len(rows), options.n_s, rng)]  # line 1
        targets = [merged(y_projected(Y[row].astype(np.float32)), options.projection) for row in sample]  # line 3
        clusters = kmeans(targets, options, rng)  # line 4
        centroids = []
        for i in range(max(clusters) + 1):  # lines 5-7; line 2 happened in `seen`
            members = [row for row, cluster in zip(sample, clusters, strict=True) if cluster == i]
            if members:
                centroids.append(centroid([seen[row] for row in members], options))
        if len(centroids) < 2:
            continue
        most = options.centroid_size or None
        if most is not None:
            most = max(most, most * len(rows) // options.centroid_rows)
        vectors = centered([vector for vector, _ in centroids], options, most)
        classifier = [(vector, bias) for vector, (_, bias) in zip(vectors, centroids, strict=True)]
        routed = [int(np.argmax([score(seen[row], *c) for c in classifier])) for row in rows]
        if len(set(routed)) < 2:
            continue
        return [
            Node(vector, bias, [row for row, child in zip(rows, routed, strict=True) if child == i])
            for i, (vector, bias) in enumerate(classifier)
            if i in routed
        ]
    return None


def sample_rows(n: int, n_s: int, rng: Rng) -> list[int]:
    """Draw at most ``n_s`` of n positions without replacement; ascending."""
    positions = list(range(n))
    if n <= n_s:
        return positions
    for i in range(n_s):
        j = i + rng.below(n - i)
        positions[i], positions[j] = positions[j], positions[i]
    return sorted(positions[:n_s])


def projector(kind: str, n_input: int, n_columns: int, seed: int) -> Callable[[npt.NDArray[Any]], Entries]:
    """A function that projects a dense row; the projected entries are in the order of the row's entries."""
    matrix = projection_matrix(kind, n_input, n_columns, seed).astype(np.float32)

    def project(row: npt.NDArray[Any]) -> Entries:
        if kind == "gaussian":
            values = np.zeros(n_columns, np.float32)
            for j in np.flatnonzero(row):
                values += row[j] * matrix[j]
            return list(enumerate(values.tolist()))
        targets = np.abs(matrix).argmax(axis=1)
        return [(int(targets[j]), float(row[j] * matrix[j, targets[j]])) for j in np.flatnonzero(row)]

    return project


def merged(entries: Entries, kind: str) -> Entries:
    """Add up entries of equal columns, drop zeros, sort by column."""
    if kind != "hash":
        return entries
    columns = sorted({column for column, _ in entries})
    summed = [(column, sum(value for other, value in entries if other == column)) for column in columns]
    return [(column, value) for column, value in summed if value != 0]


def kmeans(rows: list[Entries], options: Options, rng: Rng) -> list[int]:
    """The cluster of each row by k-means++ and Lloyd's rounds; spherical k-means under the cosine metric."""
    squares = [in_order([value * value for _, value in row]) for row in rows]
    scale = [1 / np.sqrt(s) if options.cosine and s > 0 else 1.0 for s in squares]
    if options.cosine:
        squares = [1.0 if s > 0 else 0.0 for s in squares]
    chosen = choose_centers(rows, squares, scale, options, rng)
    if len(chosen) < 2:
        return [0] * len(rows)
    centers = np.zeros((options.y_columns, options.k))
    offset = np.zeros(options.k)
    for c, first in enumerate(chosen):
        for column, value in rows[first]:
            centers[column, c] = value * scale[first]
        offset[c] = 0.0 if options.cosine else -0.5 * squares[first]
    assigned = [0] * len(rows)
    for round_ in range(options.rounds):
        if round_ > 0:
            centers, offset = moved_centers(rows, scale, assigned, options)
        for i, row in enumerate(rows):
            dots = np.zeros(options.k)
            for column, value in row:
                dots += value * centers[column]
            assigned[i] = first_best((dots * scale[i] + offset)[: len(chosen)])
    return assigned


def choose_centers(
    rows: list[Entries], squares: list[float], scale: list[float], options: Options, rng: Rng
) -> list[int]:
    """k-means++: draw a centre with probability proportional to its squared distance to the nearest one.

    Under the cosine metric the distance is one minus the cosine, which is half of the squared chord.
    """
    chosen = [rng.below(len(rows))]
    distance = [1e300] * len(rows)
    while len(chosen) < options.k:
        last = chosen[-1]
        center = {column: value * scale[last] for column, value in rows[last]}
        for i, row in enumerate(rows):
            dot = in_order([value * center.get(column, 0.0) for column, value in row])
            d = squares[i] + squares[last] - 2 * (dot * scale[i])
            d = 0.0 if d < _SAME else d
            distance[i] = min(distance[i], d * d if options.cosine else d)
        total = in_order(distance)
        if total <= 0:
            break
        target, reached, pick = rng.uniform() * total, 0.0, -1
        for i, d in enumerate(distance):
            if pick >= 0 and reached > target:
                break
            pick = i if d > 0 else pick
            reached += d
        chosen.append(pick)
    return chosen


def moved_centers(rows: list[Entries], scale: list[float], assigned: list[int], options: Options) -> tuple[F64, F64]:
    """The new centres, means of the clusters' scaled rows (unit length under cosine), and their offsets."""
    centers, sizes = np.zeros((options.y_columns, options.k)), np.zeros(options.k)
    for i, row in enumerate(rows):
        sizes[assigned[i]] += 1
        for column, value in row:
            centers[column, assigned[i]] += value * scale[i]
    squares = np.zeros(options.k)
    for values in centers:
        squares += values * values
    with np.errstate(divide="ignore"):
        lengths = 1 / np.sqrt(squares) if options.cosine else 1 / sizes
    factor = np.where((squares if options.cosine else sizes) > 0, lengths, 0.0)
    offset = np.zeros(options.k) if options.cosine else -0.5 * (squares * factor * factor)
    return centers * factor, offset


def first_best(scores: F64) -> int:
    """The index of the best score; scores that differ only by rounding are ties, and the first one wins."""
    best = 0
    for c in range(len(scores)):
        if scores[c] > scores[best] + _SAME:
            best = c
    return best


def centroid(rows: list[Entries], options: Options) -> tuple[dict[int, np.float32], float]:
    """The mean of projected rows, scaled to unit length (cosine) or with a bias (Euclidean)."""
    sums: dict[int, np.float32] = {}
    for row in rows:
        for column, value in row:
            sums[column] = np.float32(sums.get(column, np.float32(0)) + np.float32(value))
    square = in_order([float(value) * float(value) for value in sums.values()])
    length = np.sqrt(square) if options.cosine else len(rows)
    factor = np.float32(1 / length if length > 0 else 0)
    bias = 0.0 if options.cosine else float(np.float32(-0.5 * square / (len(rows) * len(rows))))
    return {column: value * factor for column, value in sums.items() if value != 0}, bias


def centered(vectors: list[dict[int, np.float32]], options: Options, most: int | None) -> list[dict[int, float]]:
    """Subtract the mean of the siblings from each centroid, then keep the largest entries.

    The mean changes no comparison of siblings; without it, the largest entries are those that decide. Entries
    are kept, largest first, until they make up ``centroid_share`` of the squared length: at least
    ``centroid_least`` and at most ``most`` entries.
    """
    mean: dict[int, np.float32] = {}
    part = np.float32(1) / np.float32(len(vectors))
    for vector in vectors:
        for column, value in vector.items():
            mean[column] = mean.get(column, np.float32(0)) + value * part
    cut = []
    for vector in vectors:
        rest = {column: vector.get(column, np.float32(0)) - mean[column] for column in sorted(mean)}
        columns = largest_share(rest, options.centroid_share, most, options.centroid_least)
        cut.append({column: float(rest[column]) for column in columns})
    return cut


def score(row: Entries, vector: dict[int, float], bias: float) -> float:
    """The score of a centroid for a row: dot product plus bias."""
    return in_order([bias, *(value * vector.get(column, 0.0) for column, value in row)])
