"""Twin of src/core/ranking: the features of a row's candidates, and sums of boosted trees, on dense arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


def describe(
    row: F64,
    lists: Sequence[Sequence[tuple[int, float]]],
    n_members: int,
    width: int,
    counts: F64,
    together: F64,
    names: Sequence[Sequence[F64]],
    n_rows: F64,
) -> dict[int, list[float]]:
    """The features of each candidate of one row.

    ``lists`` has labels and scores, best first; the first ``n_members`` are those of members. ``together[c, l]`` is
    the share of the rows with label c that have label l; ``names[l]`` are the vectors of the names of label l;
    ``n_rows[c]`` is the number of training rows that have column c.
    """
    found: dict[int, list[float]] = {}
    for label in dict.fromkeys(label for proposed in lists for label, _ in proposed):
        features = []
        for proposed in lists:
            place = next((at for at, (other, _) in enumerate(proposed, start=1) if other == label), width + 1)
            score = proposed[place - 1][1] if place <= len(proposed) and place <= width else 0.0
            features += [score, float(place), score / max(proposed[0][1], 1e-9) if proposed else 0.0]
        found[label] = features
    n, end = n_members, 3 * n_members
    means = {
        label: [sum(own[0:end:3]) / n, sum(own[2:end:3]) / n, sum(1 / place for place in own[1:end:3]) / n]
        for label, own in found.items()
    }
    by_share = sorted(found, key=lambda label: (-np.float32(means[label][1]), label))
    support = {
        label: sum(means[other][0] * together[other, label] for other in found if other != label) for label in found
    }
    most = max([1e-9, *support.values()])
    length = float(np.linalg.norm(row))
    for label, own in found.items():
        cosine, share, n_words, rarest = 0.0, -1.0, 0.0, 0.0
        for name in names[label]:
            cosine = max(cosine, float(name @ row) / length if length else 0.0)
            here = float((name[row != 0] ** 2).sum())
            if here > share:
                share, n_words = here, float(np.count_nonzero(name))
                rarest = float(np.log1p(n_rows[name != 0].min()))
        own += [*means[label], by_share.index(label) + 1.0, float(np.log1p(counts[label]))]
        own += [support[label], support[label] / most, cosine, max(share, 0.0), n_words, float(np.count_nonzero(row))]
        own.append(rarest)
    return found


def match_names(row: F64, names: Sequence[Sequence[F64]], k: int) -> list[tuple[int, float]]:
    """The k labels whose best name scores highest: cosine times the share of its squared length that the row has."""
    length = float(np.linalg.norm(row))
    scores = {}
    for label, own in enumerate(names):
        best = (
            max((float(v @ row) / length * float((v[row != 0] ** 2).sum()) for v in own), default=0.0) if length else 0
        )
        if best > 0:
            scores[label] = best
    return sorted(scores.items(), key=lambda item: (-np.float32(item[1]), item[0]))[:k]


def vote(row: F64, X: F64, Y: F64, n_terms: int, n_neighbors: int) -> tuple[dict[int, float], dict[int, float]]:
    """The labels of the most similar rows of X: their shares of the votes, and the similarity of the nearest row.

    ``X`` are the rows as they are indexed. The largest ``n_terms`` entries of the row are compared, scaled by the
    length of the whole row. A vote is a squared similarity.
    """
    length = float(np.linalg.norm(row))
    used = np.zeros_like(row)
    largest = sorted(np.flatnonzero(row), key=lambda column: (-abs(row[column]), column))[:n_terms]
    used[largest] = row[largest]
    similarity = X @ used / length if length else np.zeros(len(X))
    best = sorted(range(len(X)), key=lambda other: (-np.float32(similarity[other]), other))
    neighbors = [other for other in best if np.float32(similarity[other]) > 0][:n_neighbors]
    total = sum(similarity[other] ** 2 for other in neighbors)
    labels = {label for other in neighbors for label in np.flatnonzero(Y[other]).tolist()}
    shares = {
        label: float(sum(similarity[other] ** 2 for other in neighbors if Y[other, label]) / total) for label in labels
    }
    nearest = {label: float(max(similarity[other] for other in neighbors if Y[other, label])) for label in labels}
    return shares, nearest


def add_up(trees: Sequence[object], vector: F64, start: float) -> float:
    """The sum of the leaves that a vector reaches; a tree is a number or (feature, threshold, left, right)."""
    total = start
    for tree in trees:
        node: Any = tree
        while isinstance(node, tuple):
            feature, threshold, left, right = node
            node = left if vector[feature] <= threshold else right
        total += node
    return total
