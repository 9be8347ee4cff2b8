"""One function per metric, from a label matrix and top-k predictions to a fraction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.metrics import definitions
from labelwood.metrics.by_frequency import by_frequency
from labelwood.metrics.definitions import label_totals
from labelwood.metrics.judged import judge
from labelwood.metrics.propensity import propensity_scored
from labelwood.sparse import CSR, I64, TopK


def precision_at_k(Y: CSR, top: TopK, k: int) -> float:
    """P@k: the number of correct labels among the first k, divided by k, averaged over rows."""
    return definitions.precision(judge(Y, top), _checked_k(k))


def recall_at_k(Y: CSR, top: TopK, k: int) -> float:
    """R@k: the share of the true labels of a row that are among the first k, averaged over rows."""
    return definitions.recall(judge(Y, top), _checked_k(k))


def ndcg_at_k(Y: CSR, top: TopK, k: int) -> float:
    """nDCG@k: P@k with places discounted by 1 / log2(1 + place), divided by the best value the row allows."""
    return definitions.ndcg(judge(Y, top), _checked_k(k))


def psp_at_k(Y: CSR, top: TopK, k: int, inv_propensity: npt.ArrayLike, *, normalised: bool = True) -> float:
    """PSP@k: P@k with correct labels weighted by inverse propensity; normalised by the best possible value."""
    found = propensity_scored(Y, judge(Y, top), inv_propensity, (_checked_k(k),), normalised=normalised)
    return found[f"PSP@{k}"]


def psndcg_at_k(Y: CSR, top: TopK, k: int, inv_propensity: npt.ArrayLike, *, normalised: bool = True) -> float:
    """PSnDCG@k: nDCG@k with correct labels weighted by inverse propensity; normalised as PSP@k."""
    found = propensity_scored(Y, judge(Y, top), inv_propensity, (_checked_k(k),), normalised=normalised)
    return found[f"PSnDCG@{k}"]


def coverage_at_k(Y: CSR, top: TopK, k: int) -> float:
    """coverage@k: the share of the labels in the truth that are predicted correctly at least once."""
    return definitions.coverage(label_totals(judge(Y, top), _checked_k(k)))


def macro_f1_at_k(Y: CSR, top: TopK, k: int) -> float:
    """macroF1@k: the mean F1 of the labels in the truth if the first k labels are predicted."""
    return definitions.macro_f1(label_totals(judge(Y, top), _checked_k(k)))


def evaluate(
    Y: CSR,
    top: TopK,
    ks: Sequence[int] = (1, 3, 5),
    inv_propensity: npt.ArrayLike | None = None,
    train_label_counts: npt.ArrayLike | None = None,
) -> dict[str, float]:
    """Compute every metric at every k: ``{"P@1": ..., "P@3": ..., ..., "macroF1@5": ...}``.

    ``inv_propensity``, from :func:`~labelwood.metrics.inverse_propensities`, adds the normalised ``PSP@k`` and
    ``PSnDCG@k``. ``train_label_counts`` adds :func:`report_by_frequency`, with keys such as ``"tail/R@5"``.
    """
    places = _checked_ks(ks)
    judged = judge(Y, top)
    totals = {k: label_totals(judged, k) for k in places}
    found = {f"{name}@{k}": metric(judged, k) for name, metric in definitions.BY_ROW.items() for k in places}
    found |= {f"{name}@{k}": metric(totals[k]) for name, metric in definitions.BY_LABEL.items() for k in places}
    if inv_propensity is not None:
        found |= propensity_scored(Y, judged, inv_propensity, places)
    if train_label_counts is not None:
        for name, values in by_frequency(judged, totals, train_label_counts).items():
            found |= {f"{name}/{key}": value for key, value in values.items()}
    return found


def report_by_frequency(
    Y: CSR, top: TopK, train_label_counts: npt.ArrayLike, ks: Sequence[int] = (1, 3, 5)
) -> dict[str, dict[str, float]]:
    """Compute the metrics of head, middle, tail and unseen labels (see :func:`~labelwood.metrics.frequency_bins`).

    In each bin, ``P@k`` is the contribution of its labels to P@k (the bins add up to P@k), ``R@k`` the share of its
    true labels that are found; ``coverage@k`` and ``macroF1@k`` are those of its labels. ``labels``, ``labels_tested``
    (labels in the truth), ``test_share`` (share of all true labels), ``least_count`` and ``most_count`` (training
    rows) describe the bin.
    """
    judged = judge(Y, top)
    return by_frequency(judged, {k: label_totals(judged, k) for k in _checked_ks(ks)}, train_label_counts)


def label_counts(Y: CSR) -> I64:
    """Return the number of rows of each label."""
    return np.bincount(Y.indices, minlength=Y.n_cols)


def _checked_k(k: int) -> int:
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise LabelwoodError(f"metrics: k must be an integer, at least 1; got {k!r}")
    return int(k)


def _checked_ks(ks: Sequence[int]) -> tuple[int, ...]:
    if not len(ks):
        raise LabelwoodError("metrics: ks must name at least one k; got none")
    return tuple(_checked_k(k) for k in ks)
