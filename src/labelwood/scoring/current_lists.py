"""Lists of labels after some labels were retired or merged into others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labelwood.sparse import I32, TopK


def targets_of(moved: Mapping[int, int], n_labels: int) -> I32:
    """The label that each label counts for: itself, another one, or none (-1)."""
    target = np.arange(n_labels, dtype=np.int32)
    for label, other in moved.items():
        target[label] = other
    return target


def current_lists(top: TopK, target: I32, k: int) -> TopK:
    """The k best of the labels that those of ``top`` count for; of several for one label, the best score counts.

    >>> top = TopK(np.array([[2, 0, 1, 3]], np.int32), np.array([[0.9, 0.8, 0.7, 0.6]], np.float32))
    >>> current_lists(top, targets_of({0: -1, 2: 1}, 4), 3)
    TopK(labels=array([[ 1,  3, -1]], dtype=int32), scores=array([[0.9, 0.6, 0. ]], dtype=float32))
    """
    labels = np.where(top.labels >= 0, target[top.labels], -1)
    found = np.full((len(labels), k), -1, np.int32)
    scores = np.zeros((len(labels), k), np.float32)
    # The first of equal labels in a row has the best score; it stays in its place.
    order = np.argsort(labels, axis=1, kind="stable")
    ordered = np.take_along_axis(labels, order, axis=1)
    is_first = np.ones_like(ordered, dtype=bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    kept = np.zeros_like(is_first)
    np.put_along_axis(kept, order, is_first & (ordered >= 0), axis=1)
    place = np.cumsum(kept, axis=1) - 1
    rows, columns = np.nonzero(kept & (place < k))
    at = place[rows, columns]
    found[rows, at], scores[rows, at] = labels[rows, columns], top.scores[rows, columns]
    return TopK(found, scores)
