"""Predictions compared with the truth: the input of every metric, computed once.

A predicted list is sorted, best first. Labels with equal scores form a *tied block*. Their order is arbitrary, so each
place of the block gains the mean of the block, which is the expectation over all orders. If the list ends within a
block, only the labels in the list count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, F64, I32, I64, Bool, TopK


@dataclass(frozen=True)
class TiedRows:
    """The rows with tied scores; the block of each item of these rows has the places ``[first, past)``."""

    rows: I64
    first: I64
    past: I64

    def average(self, values: F64) -> F64:
        """Replace the values of each tied block by their mean; the shape is [rows, width]."""
        totals = np.zeros((len(self.rows), values.shape[1] + 1))
        np.cumsum(values[self.rows], axis=1, out=totals[:, 1:])
        blocks = np.take_along_axis(totals, self.past, 1) - np.take_along_axis(totals, self.first, 1)
        averaged = values.copy()
        averaged[self.rows] = blocks / (self.past - self.first)
        return averaged


@dataclass(frozen=True)
class Judged:
    """One predicted list per row, compared with the truth.

    ``labels`` [rows, width]: predicted labels, padded with -1. ``hits`` [rows, width]: whether each label is correct.
    ``gains`` [rows, width]: the expected gain of each place. ``n_true`` [rows]: true labels of each row.
    ``n_positive`` [labels]: rows of each label. ``tied``: the rows with tied scores, None if there are none.
    """

    labels: I32
    hits: Bool
    gains: F64
    n_true: I64
    n_positive: I64
    tied: TiedRows | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.n_positive)

    def weighted(self, label_weights: F64) -> Judged:
        """Return the same lists with a gain of ``label_weights`` instead of 1 for a correct label."""
        gains = self.hits * label_weights[self.labels]
        return replace(self, gains=gains if self.tied is None else self.tied.average(gains))

    def chance(self, k: int) -> F64:
        """The probability of each item to be in the first k places; without ties it is 0 or 1."""
        width = self.labels.shape[1]
        untied = np.broadcast_to((np.arange(width) < k).astype(np.float64), self.labels.shape)
        if self.tied is None:
            return untied
        chances = untied.copy()
        block = self.tied.past - self.tied.first
        chances[self.tied.rows] = np.clip(k - self.tied.first, 0, block) / block
        return chances


def judge(Y: CSR, top: TopK) -> Judged:
    """Check a prediction, compare it with the truth, and find the tied blocks."""
    labels, scores = _checked(Y, top)
    n_true = np.diff(Y.indptr)
    n_positive = np.bincount(Y.indices, minlength=Y.n_cols)
    hits, tied = _is_true(Y, n_true, labels), _ties(labels, scores)
    gains = hits.astype(np.float64)
    return Judged(labels, hits, gains if tied is None else tied.average(gains), n_true, n_positive, tied)


def best_ranking(Y: CSR, label_weights: F64, width: int) -> Judged:
    """Return the best possible lists: the true labels of each row by falling weight, ``width`` per row."""
    n_true = np.diff(Y.indptr)
    by_weight = np.argsort(-label_weights, kind="stable")
    rank = np.empty(Y.n_cols, np.int64)
    rank[by_weight] = np.arange(Y.n_cols)
    rows = np.repeat(np.arange(Y.n_rows), n_true)
    # Sort (row, rank) packed in one integer; the rows are in order already and stay in place.
    ranks = np.sort(rows * Y.n_cols + rank[Y.indices]) - rows * Y.n_cols
    place = np.arange(Y.nnz) - Y.indptr[rows]
    kept = place < width
    labels = np.full((Y.n_rows, width), -1, np.int32)
    labels[rows[kept], place[kept]] = by_weight[ranks[kept]]
    n_positive = np.bincount(Y.indices, minlength=Y.n_cols)
    hits = labels >= 0
    return Judged(labels, hits, hits * label_weights[labels], n_true, n_positive, None)


def _is_true(Y: CSR, n_true: I64, labels: I32) -> Bool:
    """Find the (row, label) pairs that are in Y by binary search: the pairs of a CSR are sorted."""
    stored = np.repeat(np.arange(Y.n_rows), n_true) * Y.n_cols + Y.indices
    if not len(stored):
        return np.zeros(labels.shape, np.bool_)
    asked = np.arange(Y.n_rows)[:, None] * Y.n_cols + labels
    nearest = stored[np.minimum(np.searchsorted(stored, asked), len(stored) - 1)]
    true: Bool = (nearest == asked) & (labels >= 0)
    return true


def _ties(labels: I32, scores: npt.NDArray[np.floating]) -> TiedRows | None:
    """Find the tied blocks; padding is never tied."""
    equal = (scores[:, 1:] == scores[:, :-1]) & (labels[:, 1:] >= 0)
    rows = np.flatnonzero(equal.any(axis=1))
    if not len(rows):
        return None
    width = labels.shape[1]
    places = np.arange(width)
    opens = np.ones((len(rows), width), np.bool_)
    opens[:, 1:] = ~equal[rows]
    first = np.maximum.accumulate(np.where(opens, places, 0), axis=1)
    closes = np.ones((len(rows), width), np.bool_)
    closes[:, :-1] = opens[:, 1:]
    past = np.minimum.accumulate(np.where(closes, places + 1, width)[:, ::-1], axis=1)[:, ::-1]
    return TiedRows(rows, first, past)


def _checked(Y: CSR, top: TopK) -> tuple[I32, npt.NDArray[np.floating]]:
    labels, scores = np.asarray(top[0]), np.asarray(top[1])
    if labels.ndim != 2 or labels.shape != scores.shape:
        raise LabelwoodError(
            "metrics: labels and scores of the prediction must be [rows, k] arrays of one shape; "
            f"got {labels.shape} and {scores.shape}"
        )
    if len(labels) != Y.n_rows or Y.n_rows == 0:
        raise LabelwoodError(
            f"metrics: Y must have one row per predicted list, at least 1; got {Y.n_rows} and {len(labels)}"
        )
    if Y.n_cols == 0:
        raise LabelwoodError("metrics: Y must have at least one label; got none")
    if labels.dtype.kind not in "iu":
        raise LabelwoodError(f"metrics: predicted labels must be integer ids into Y; got dtype {labels.dtype}")
    if labels.size == 0:
        return labels.astype(np.int32), scores
    if labels.min() < -1 or labels.max() >= Y.n_cols:
        raise LabelwoodError(
            f"metrics: predicted labels must be in [0, {Y.n_cols}), or -1 for padding; "
            f"got {labels.min()}..{labels.max()}. Y needs as many columns as the model has labels."
        )
    real = labels >= 0
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise LabelwoodError("metrics: padding (-1) must be at the end of a predicted list")
    if np.isnan(scores[real]).any():
        raise LabelwoodError("metrics: scores must be numbers; got NaN")
    if (real[:, 1:] & (scores[:, 1:] > scores[:, :-1])).any():
        raise LabelwoodError(
            "metrics: a predicted list must be sorted, best first; got a score that is higher than the one before"
        )
    by_id = np.sort(labels, axis=1)
    if ((by_id[:, 1:] == by_id[:, :-1]) & (by_id[:, 1:] >= 0)).any():
        raise LabelwoodError("metrics: the labels of a predicted list must be distinct")
    return labels.astype(np.int32, copy=False), scores
