"""Suggestions from a model: the best labels of rows, cut by a threshold and by the labels that are allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from labelwood.estimator import TreeEstimator
from labelwood.sparse import CSR

Label = str | int


class Suggestion(NamedTuple):
    """A label and its score."""

    label: Label
    score: float


def suggest(
    estimator: TreeEstimator,
    rows: CSR,
    *,
    k: int,
    threshold: float = 0.0,
    allowed: Collection[Label] | None = None,
) -> list[list[Suggestion]]:
    """The k best labels of each row that score at least ``threshold`` and are among ``allowed``, best first.

    With ``allowed`` the search is asked for more and more labels until k of each row are allowed ones. A beam search
    looks at some labels only, so a row may end up with fewer.
    """
    if allowed is None:
        return [list(row) for row in _found(estimator, rows, k, threshold)]
    permitted, width = frozenset(allowed), 4 * k
    while True:
        wide = list(_found(estimator, rows, width, threshold))
        kept = [[one for one in row if one.label in permitted][:k] for row in wide]
        enough = all(
            len(few) >= min(k, len(permitted)) or len(row) < width
            for few, row in zip(kept, wide, strict=True)
        )
        if enough or width >= estimator.n_labels_:
            return kept
        width = min(4 * width, estimator.n_labels_)


def _found(estimator: TreeEstimator, rows: CSR, k: int, threshold: float) -> Iterator[list[Suggestion]]:
    if estimator.n_labels_ == 0:
        yield from ([] for _ in range(rows.n_rows))
        return
    top = estimator._topk_ids(rows, min(k, estimator.n_labels_))
    least = float(np.float32(threshold))
    for ids, scores in zip(top.labels.tolist(), top.scores.tolist(), strict=True):
        kept = [
            (label, score) for label, score in zip(ids, scores, strict=True) if label >= 0 and score >= least
        ]
        names = estimator._names.named([label for label, _ in kept])
        yield [Suggestion(as_label(name), score) for name, (_, score) in zip(names, kept, strict=True)]


def as_label(name: Any) -> Label:
    """A label name as JSON holds it: a string or an integer stays, anything else is spelt out."""
    return name if isinstance(name, str | int) and not isinstance(name, bool) else str(name)
