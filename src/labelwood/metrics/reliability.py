"""Reliability of scores as probabilities, calibration error, and the F1 of label sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.metrics.inputs import Lists, Truth, read, read_sets
from labelwood.metrics.judged import judge
from labelwood.sparse import F64


class Reliability(NamedTuple):
    """A reliability curve: mean score, share of correct labels and number of labels in bins of equal width.

    Empty bins are left out.
    """

    score: F64
    right: F64
    size: F64

    @property
    def error(self) -> float:
        """The mean difference between score and share of correct labels, weighted by the size of the bins."""
        return float((np.abs(self.score - self.right) * self.size).sum() / max(self.size.sum(), 1))


def reliability(Y: Truth, top: Lists, *, n_bins: int = 15) -> Reliability:
    """Compute the reliability curve of the labels in ``top``."""
    if n_bins < 1:
        raise LabelwoodError(f"metrics: n_bins must be at least 1; got {n_bins}")
    given = read(Y, top)
    judged = judge(given.truth, given.top)
    known = judged.labels >= 0
    scores, hits = np.asarray(given.top.scores, np.float64)[known], judged.hits[known]
    bins = np.clip((scores * n_bins).astype(np.int64), 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins).astype(np.float64)
    used = count > 0
    sums = [np.bincount(bins, weights=values, minlength=n_bins)[used] for values in (scores, hits)]
    return Reliability(sums[0] / count[used], sums[1] / count[used], count[used])


def calibration_error(Y: Truth, top: Lists, *, n_bins: int = 15) -> float:
    """The expected calibration error: the mean difference between scores and shares of correct labels.

    >>> from labelwood.sparse import TopK, from_lists
    >>> Y = from_lists([[0], [0], [1], [1]], n_cols=2)
    >>> top = TopK(np.zeros((4, 1), np.int32), np.full((4, 1), 0.75, np.float32))
    >>> calibration_error(Y, top)
    0.25
    """
    return reliability(Y, top, n_bins=n_bins).error


def set_scores(Y: Truth, predicted: Truth) -> dict[str, float]:
    """Compute micro-averaged precision, recall and F1 of predicted label sets, and macro-averaged F1.

    The macro average is over the labels in the truth.

    >>> from labelwood.sparse import from_lists
    >>> found = set_scores(from_lists([[0, 1], [1]], 2), from_lists([[0], [0, 1]], 2))
    >>> round(found["microF1"], 4), round(found["macroF1"], 4)
    (0.6667, 0.6667)
    """
    sets = read_sets(Y, predicted)
    if sets[0].n_rows != sets[1].n_rows:
        raise LabelwoodError(
            f"metrics: Y must have one row per predicted set; got {sets[0].n_rows} and {sets[1].n_rows}"
        )
    width = max(sets[0].n_cols, sets[1].n_cols)
    pairs, said_pairs = (np.repeat(np.arange(m.n_rows), np.diff(m.indptr)) * width + m.indices for m in sets)
    right = np.bincount(np.intersect1d(pairs, said_pairs, assume_unique=True) % width, minlength=width)
    true, said = (np.bincount(m.indices, minlength=width) for m in sets)
    f1 = 2 * right / np.maximum(true + said, 1)
    return {
        "microP": float(right.sum() / max(said.sum(), 1)),
        "microR": float(right.sum() / max(true.sum(), 1)),
        "microF1": float(2 * right.sum() / max(true.sum() + said.sum(), 1)),
        "macroF1": float(f1[true > 0].mean()) if (true > 0).any() else 0.0,
    }
