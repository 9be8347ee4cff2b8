"""The definitions of the metrics, on :class:`~labelwood.metrics.judged.Judged` lists.

Means are over all rows. A row without true labels counts as 0, as in the code of the XMC repository and in
scikit-learn's ``ndcg_score``; leaving it out would change the denominator of P@k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from labelwood.metrics.judged import Judged
from labelwood.sparse import F64, I64


def row_precision(judged: Judged, k: int) -> F64:
    """The gain of the first k places of each row, divided by k, also if the list is shorter than k."""
    gains: F64 = judged.gains[:, :k].sum(axis=1) / k
    return gains


def row_recall(judged: Judged, k: int) -> F64:
    """The share of the true labels of each row that are in its first k places."""
    shares: F64 = judged.gains[:, :k].sum(axis=1) / np.maximum(judged.n_true, 1)
    return shares


def row_ndcg(judged: Judged, k: int) -> F64:
    """The discounted gain of each row, 1 / log2(1 + place), divided by that of a perfect list."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    reachable = np.cumsum(discounts)[np.clip(judged.n_true, 1, k) - 1]
    gains = judged.gains[:, :k]
    quotients: F64 = gains @ discounts[: gains.shape[1]] / reachable
    return quotients


def row_f1(judged: Judged, k: int) -> F64:
    """The F1 of the first k places of each row: twice the gain, divided by the labels listed plus the true labels."""
    listed = (judged.labels[:, :k] >= 0).sum(axis=1)
    quotients: F64 = 2 * judged.gains[:, :k].sum(axis=1) / np.maximum(listed + judged.n_true, 1)
    return quotients


def row_ndcg_of_all(judged: Judged, k: int) -> F64:
    """The discounted gain of the first k places of each row, divided by that of a list of all its true labels."""
    discounts = 1 / np.log2(np.arange(2, max(k, int(judged.n_true.max(initial=1))) + 2))
    reachable = np.cumsum(discounts)[np.maximum(judged.n_true, 1) - 1]
    gains = judged.gains[:, :k]
    quotients: F64 = gains @ discounts[: gains.shape[1]] / reachable
    return quotients


def precision(judged: Judged, k: int) -> float:
    """The mean of :func:`row_precision`."""
    return float(row_precision(judged, k).mean())


def recall(judged: Judged, k: int) -> float:
    """The mean of :func:`row_recall`."""
    return float(row_recall(judged, k).mean())


def ndcg(judged: Judged, k: int) -> float:
    """The mean of :func:`row_ndcg`."""
    return float(row_ndcg(judged, k).mean())


def f1(judged: Judged, k: int) -> float:
    """The mean of :func:`row_f1`."""
    return float(row_f1(judged, k).mean())


def ndcg_of_all(judged: Judged, k: int) -> float:
    """The mean of :func:`row_ndcg_of_all`."""
    return float(row_ndcg_of_all(judged, k).mean())


@dataclass(frozen=True)
class LabelTotals:
    """Totals of each label over the first k places; expected values where scores are tied.

    ``hits``: correct predictions. ``predicted``: predictions. ``covered``: the probability of at least one correct
    prediction. ``n_positive``: rows with the label.
    """

    hits: F64
    predicted: F64
    covered: F64
    n_positive: I64

    @property
    def f1(self) -> F64:
        """The F1 of each label; 0 for a label that is neither predicted nor true."""
        either = self.predicted + self.n_positive
        f1: F64 = 2 * self.hits / np.where(either > 0, either, 1)
        return f1


def label_totals(judged: Judged, k: int) -> LabelTotals:
    """Add up the first k places by label."""
    chance = judged.chance(k)
    inside = (judged.labels >= 0) & (chance > 0)
    labels, chances, hits = judged.labels[inside], chance[inside], judged.hits[inside]
    missed = np.ones(judged.n_labels)
    np.multiply.at(missed, labels[hits], 1 - chances[hits])
    counts = np.zeros((2, judged.n_labels))
    counts[0] = np.bincount(labels, weights=chances * hits, minlength=judged.n_labels)
    counts[1] = np.bincount(labels, weights=chances, minlength=judged.n_labels)
    return LabelTotals(counts[0], counts[1], 1 - missed, judged.n_positive)


def coverage(totals: LabelTotals) -> float:
    """The share of the labels in the truth that are predicted correctly at least once."""
    return _mean_over_positive(totals, totals.covered)


def macro_f1(totals: LabelTotals) -> float:
    """The mean F1 of the labels in the truth."""
    return _mean_over_positive(totals, totals.f1)


def _mean_over_positive(totals: LabelTotals, per_label: F64) -> float:
    positive = totals.n_positive > 0
    return float(per_label[positive].mean()) if positive.any() else 0.0


PER_ROW: Mapping[str, Callable[[Judged, int], F64]] = MappingProxyType(
    {"P": row_precision, "R": row_recall, "nDCG": row_ndcg}
)
BY_ROW: Mapping[str, Callable[[Judged, int], float]] = MappingProxyType({"P": precision, "R": recall, "nDCG": ndcg})
BY_LABEL: Mapping[str, Callable[[LabelTotals], float]] = MappingProxyType({"coverage": coverage, "macroF1": macro_f1})
PROPENSITY_SCORED: Mapping[str, Callable[[Judged, int], float]] = MappingProxyType({"PSP": precision, "PSnDCG": ndcg})
