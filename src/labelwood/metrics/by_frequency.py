"""Metrics of frequent and rare labels separately."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.metrics.definitions import LabelTotals
from labelwood.metrics.judged import Judged
from labelwood.sparse import Bool

BINS = ("head", "middle", "tail", "unseen")


def frequency_bins(
    train_label_counts: npt.ArrayLike, *, head: float = 0.5, middle: float = 0.9
) -> npt.NDArray[np.int64]:
    """Return the bin of each label, an index into ``BINS``, by its number of training rows.

    Sort the labels by falling frequency. The *head* consists of the first labels that make up the share ``head`` of all
    label occurrences, the *middle* of the next labels up to the share ``middle``, the *tail* of the rest; labels
    without a training row are *unseen*. Labels with equal counts are in the same bin: the bin depends on the share of
    the strictly more frequent labels.

    >>> [BINS[b] for b in frequency_bins([50, 30, 10, 5, 5, 0])]
    ['head', 'middle', 'middle', 'tail', 'tail', 'unseen']
    """
    counts = np.asarray(train_label_counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iuf" or not (np.isfinite(counts) & (counts >= 0)).all():
        raise LabelwoodError("metrics: train_label_counts must be one finite count, at least 0, per label")
    if not 0 < head <= middle <= 1:
        raise LabelwoodError(f"metrics: head and middle must be shares, 0 < head <= middle <= 1; got {head}, {middle}")
    values, where, labels_of_value = np.unique(counts, return_inverse=True, return_counts=True)
    occurrences = (values * labels_of_value).astype(np.float64)
    more_frequent = occurrences[::-1].cumsum()[::-1] - occurrences
    share = more_frequent / max(occurrences.sum(), 1)
    bins = np.searchsorted([head, middle], share, side="right")
    bins[values == 0] = BINS.index("unseen")
    of_label: npt.NDArray[np.int64] = bins[where]
    return of_label


def by_frequency(
    judged: Judged, totals: Mapping[int, LabelTotals], train_label_counts: npt.ArrayLike
) -> dict[str, dict[str, float]]:
    """Compute :func:`labelwood.metrics.report_by_frequency` from the totals at each k."""
    counts = np.asarray(train_label_counts)
    if counts.shape != (judged.n_labels,):
        raise LabelwoodError(
            f"metrics: train_label_counts must hold one count for each of the {judged.n_labels} labels of Y; "
            f"got shape {counts.shape}"
        )
    bins = frequency_bins(counts)
    report: dict[str, dict[str, float]] = {}
    for i, name in enumerate(BINS):
        inside = bins == i
        tested = inside & (judged.n_positive > 0)
        report[name] = part = _facts(judged, counts, inside)
        for k, at_k in totals.items():
            hits = at_k.hits[inside].sum()
            part[f"P@{k}"] = float(hits / (k * judged.n_rows))
            part[f"R@{k}"] = float(hits / max(judged.n_positive[inside].sum(), 1))
            part[f"coverage@{k}"] = float(at_k.covered[tested].sum() / max(tested.sum(), 1))
            part[f"macroF1@{k}"] = float(at_k.f1[tested].sum() / max(tested.sum(), 1))
    return report


def _facts(judged: Judged, counts: npt.NDArray[np.generic], inside: Bool) -> dict[str, float]:
    members = counts[inside]
    return {
        "labels": float(len(members)),
        "labels_tested": float((judged.n_positive[inside] > 0).sum()),
        "test_share": float(judged.n_positive[inside].sum() / max(judged.n_positive.sum(), 1)),
        "least_count": float(members.min()) if len(members) else 0.0,
        "most_count": float(members.max()) if len(members) else 0.0,
    }
