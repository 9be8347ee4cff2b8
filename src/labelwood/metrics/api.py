"""One function per metric, from truth and predictions to a fraction; :mod:`~labelwood.metrics.inputs` reads both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.metrics import definitions
from labelwood.metrics.by_frequency import by_frequency
from labelwood.metrics.definitions import label_totals
from labelwood.metrics.inputs import Lists, PerLabel, Truth, read
from labelwood.metrics.judged import Judged, judge
from labelwood.metrics.propensity import propensity_scored
from labelwood.sparse import CSR, I64
from labelwood.validation.targets import is_matrix, read_matrix, read_rows


def precision_at_k(Y: Truth, top: Lists, k: int) -> float:
    """P@k: the number of correct labels among the first k, divided by k, averaged over rows."""
    return definitions.precision(_judged(Y, top), _checked_k(k))


def recall_at_k(Y: Truth, top: Lists, k: int) -> float:
    """R@k: the share of the true labels of a row that are among the first k, averaged over rows."""
    return definitions.recall(_judged(Y, top), _checked_k(k))


def ndcg_at_k(Y: Truth, top: Lists, k: int) -> float:
    """nDCG@k: P@k with places discounted by 1 / log2(1 + place), divided by the best value the row allows."""
    return definitions.ndcg(_judged(Y, top), _checked_k(k))


def f1_at_k(Y: Truth, top: Lists, k: int) -> float:
    """F1@k: twice the correct labels among the first k, divided by the labels listed plus the true labels.

    It equals ``F1@k`` of ``annif eval`` and scikit-learn's ``f1_score`` with ``average="samples"``.
    """
    return definitions.f1(_judged(Y, top), _checked_k(k))


def ndcg_of_all_at_k(Y: Truth, top: Lists, k: int) -> float:
    """nDCG@k whose divisor is the best value of a list of all true labels, also if they are more than k.

    It equals ``NDCG`` of ``annif eval`` with ``--limit k``, on rows with at least one true label.
    """
    return definitions.ndcg_of_all(_judged(Y, top), _checked_k(k))


def psp_at_k(Y: Truth, top: Lists, k: int, inv_propensity: PerLabel, *, normalised: bool = True) -> float:
    """PSP@k: P@k with correct labels weighted by inverse propensity; normalised by the best possible value."""
    return _propensity_scored(Y, top, k, inv_propensity, normalised=normalised)[f"PSP@{k}"]


def psndcg_at_k(Y: Truth, top: Lists, k: int, inv_propensity: PerLabel, *, normalised: bool = True) -> float:
    """PSnDCG@k: nDCG@k with correct labels weighted by inverse propensity; normalised as PSP@k."""
    return _propensity_scored(Y, top, k, inv_propensity, normalised=normalised)[f"PSnDCG@{k}"]


def coverage_at_k(Y: Truth, top: Lists, k: int) -> float:
    """coverage@k: the share of the labels in the truth that are predicted correctly at least once."""
    return definitions.coverage(label_totals(_judged(Y, top), _checked_k(k)))


def macro_f1_at_k(Y: Truth, top: Lists, k: int) -> float:
    """macroF1@k: the mean F1 of the labels in the truth if the first k labels are predicted."""
    return definitions.macro_f1(label_totals(_judged(Y, top), _checked_k(k)))


def evaluate(
    Y: Truth,
    top: Lists,
    ks: Sequence[int] = (1, 3, 5),
    inv_propensity: PerLabel | None = None,
    train_label_counts: PerLabel | None = None,
) -> dict[str, float]:
    """Compute every metric at every k: ``{"P@1": ..., "P@3": ..., ..., "macroF1@5": ...}``.

    ``inv_propensity``, from :func:`~labelwood.metrics.inverse_propensities`, adds the normalised ``PSP@k`` and
    ``PSnDCG@k``. ``train_label_counts`` adds :func:`report_by_frequency`, with keys such as ``"tail/R@5"``.
    """
    places = _checked_ks(ks)
    given = read(Y, top)
    judged = judge(given.truth, given.top)
    totals = {k: label_totals(judged, k) for k in places}
    found = {f"{name}@{k}": metric(judged, k) for name, metric in definitions.BY_ROW.items() for k in places}
    found |= {f"{name}@{k}": metric(totals[k]) for name, metric in definitions.BY_LABEL.items() for k in places}
    if inv_propensity is not None:
        weights = given.per_label(inv_propensity, "inv_propensity")
        found |= propensity_scored(given.truth, judged, weights, places)
    if train_label_counts is not None:
        counts = given.per_label(train_label_counts, "train_label_counts")
        for name, values in by_frequency(judged, totals, counts).items():
            found |= {f"{name}/{key}": value for key, value in values.items()}
    return found


def report_by_frequency(
    Y: Truth, top: Lists, train_label_counts: PerLabel, ks: Sequence[int] = (1, 3, 5)
) -> dict[str, dict[str, float]]:
    """Compute the metrics of head, middle, tail and unseen labels (see :func:`~labelwood.metrics.frequency_bins`).

    In each bin, ``P@k`` is the contribution of its labels to P@k (the bins add up to P@k), ``R@k`` the share of its
    true labels that are found; ``coverage@k`` and ``macroF1@k`` are those of its labels. ``labels``, ``labels_tested``
    (labels in the truth), ``test_share`` (share of all true labels), ``least_count`` and ``most_count`` (training
    rows) describe the bin.
    """
    given = read(Y, top)
    judged = judge(given.truth, given.top)
    counts = given.per_label(train_label_counts, "train_label_counts")
    return by_frequency(judged, {k: label_totals(judged, k) for k in _checked_ks(ks)}, counts)


@overload
def label_counts(Y: CSR) -> I64: ...


@overload
def label_counts(Y: Truth) -> Any: ...


def label_counts(Y: Truth) -> Any:
    """Return the number of rows of each label: an array for a matrix, a ``Counter`` for rows of label names.

    >>> label_counts([["cat", "dog"], ["cat"]])
    Counter({'cat': 2, 'dog': 1})
    """
    if is_matrix(Y):
        matrix = read_matrix(Y, owner="metrics")
        return np.bincount(matrix.indices, minlength=matrix.n_cols)
    return Counter(name for row in read_rows(Y, owner="metrics") for name in dict.fromkeys(row))


def _judged(Y: Truth, top: Lists) -> Judged:
    given = read(Y, top)
    return judge(given.truth, given.top)


def _propensity_scored(Y: Truth, top: Lists, k: int, inv_propensity: PerLabel, *, normalised: bool) -> dict[str, float]:
    given = read(Y, top)
    weights = given.per_label(inv_propensity, "inv_propensity")
    return propensity_scored(
        given.truth, judge(given.truth, given.top), weights, (_checked_k(k),), normalised=normalised
    )


def _checked_k(k: Any) -> int:
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise LabelwoodError(f"metrics: k must be an integer, at least 1; got {k!r}")
    return int(k)


def _checked_ks(ks: Sequence[int]) -> tuple[int, ...]:
    if not len(ks):
        raise LabelwoodError("metrics: ks must name at least one k; got none")
    return tuple(_checked_k(k) for k in ks)
