"""Doubt: how unsure a model is of its suggestions for a row, to choose the rows that people should label next."""

from __future__ import annotations

import numpy as np

from labelwood.sparse import F32, I64, TopK


def doubt(top: TopK) -> F32:
    """The expected number of wrong labels in the list of each row: the sum of 1 - p over their scores.

    >>> top = TopK(np.array([[3, 5], [4, -1]], np.int32), np.array([[0.75, 0.5], [1.0, 0.0]], np.float32))
    >>> doubt(top).tolist()
    [0.75, 1.0]
    """
    found: F32 = (1.0 - np.clip(top.scores, 0.0, 1.0)).sum(axis=1, dtype=np.float32)
    return found


def doubtful_first(doubts: F32, *, seed: int) -> I64:
    """The rows whose doubt is at least the median, then the others, both at random.

    The most doubtful rows are like each other: taken alone, they teach less than rows at random.

    >>> sorted(doubtful_first(np.array([0.1, 0.9, 0.2, 0.8], np.float32), seed=0)[:2].tolist())
    [1, 3]
    """
    order = np.random.default_rng(seed).permutation(len(doubts))
    is_sure = doubts[order] < np.median(doubts) if len(doubts) else np.zeros(0, bool)
    found: I64 = order[np.argsort(is_sure, kind="stable")]
    return found
