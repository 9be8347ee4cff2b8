"""One definition of each metric, over :class:`~labelwood.metrics.judged.Judged` lists.

Means are over all rows. A row without true labels adds 0 to each of them, as in the code of the XMC
repository and in scikit-learn's ``ndcg_score``: nothing can be gained on it, and dropping it would change
what P@k divides by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from labelwood.metrics.judged import F64, Bool, Judged

Metric = Callable[[Judged, int], float]


def precision(judged: Judged, k: int) -> float:
    """The gain of the first k places, over k; a list shorter than k is still divided by k."""
    return float(judged.gains[:, :k].sum() / (k * judged.n_rows))


def recall(judged: Judged, k: int) -> float:
    """The share of a row's true labels that are in its first k places."""
    return float((judged.gains[:, :k].sum(axis=1) / np.maximum(judged.n_true, 1)).mean())


def ndcg(judged: Judged, k: int) -> float:
    """The gain discounted by 1 / log2(1 + place), over what ``min(k, true labels)`` gains of 1 would give."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    reachable = np.cumsum(discounts)[np.clip(judged.n_true, 1, k) - 1]
    gains = judged.gains[:, :k]
    return float((gains @ discounts[: gains.shape[1]] / reachable).mean())


def coverage(judged: Judged, k: int) -> float:
    """The share of the labels true of some row that are right in the first k places at least once."""
    return mean_over_positive(judged, label_coverage(judged, k))


def macro_f1(judged: Judged, k: int) -> float:
    """The F1 of each label when the first k are predicted, averaged over the labels true of some row."""
    return mean_over_positive(judged, label_f1(judged, k))


RANKING: Mapping[str, Metric] = MappingProxyType(
    {"P": precision, "R": recall, "nDCG": ndcg, "coverage": coverage, "macroF1": macro_f1}
)
PROPENSITY_SCORED: Mapping[str, Metric] = MappingProxyType({"PSP": precision, "PSnDCG": ndcg})


def mean_over_positive(judged: Judged, per_label: F64) -> float:
    """The mean over the labels that are true of some row; 0 when there are none."""
    positive = judged.n_positive > 0
    return float(per_label[positive].mean()) if positive.any() else 0.0


def label_coverage(judged: Judged, k: int) -> F64:
    """The probability of each label to be predicted rightly at least once: 1 or 0 but for ties."""
    hits = judged.hits
    missed = np.ones(judged.n_labels)
    np.multiply.at(missed, judged.labels[hits], 1 - judged.chance(k)[hits])
    return 1 - missed


def label_hits(judged: Judged, k: int) -> F64:
    """The expected number of right predictions of each label in the first k places."""
    return _count(judged, judged.hits, k)


def label_f1(judged: Judged, k: int) -> F64:
    """The F1 of each label, from its expected counts where scores tie; 0 if never predicted nor true."""
    n_predicted = _count(judged, judged.labels >= 0, k)
    either = n_predicted + judged.n_positive
    f1: F64 = 2 * label_hits(judged, k) / np.where(either > 0, either, 1)
    return f1


def _count(judged: Judged, items: Bool, k: int) -> F64:
    """How often each label is expected in the first k places, of the items marked."""
    chances = judged.chance(k)[items]
    return np.bincount(judged.labels[items], weights=chances, minlength=judged.n_labels).astype(
        np.float64, copy=False
    )
