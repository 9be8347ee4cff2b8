"""Propensities after Jain, Prabhu and Varma (KDD 2016): the probability that a relevant label is in the truth.

Rare labels are missing from the truth more often than frequent labels. Weighting correct labels by inverse propensity
compensates for this and rewards the tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.metrics.definitions import PROPENSITY_SCORED
from labelwood.metrics.judged import Judged, best_ranking
from labelwood.sparse import CSR, F64


def propensities(label_counts: npt.ArrayLike, n_rows: int, *, A: float = 0.55, B: float = 1.5) -> F64:
    """Return the propensity of each label, the inverse of :func:`inverse_propensities`."""
    return 1 / inverse_propensities(label_counts, n_rows, A=A, B=B)


class LabelWeights(dict[Any, float]):
    """Weights by label name; a label that is not listed weighs ``unseen``, the weight of a label without rows."""

    def __init__(self, weights: Mapping[Any, float], unseen: float):
        super().__init__(weights)
        self.unseen = unseen

    def __missing__(self, name: Any) -> float:
        return self.unseen


@overload
def inverse_propensities(
    label_counts: Mapping[Any, int], n_rows: int, *, A: float = 0.55, B: float = 1.5
) -> LabelWeights: ...


@overload
def inverse_propensities(label_counts: npt.ArrayLike, n_rows: int, *, A: float = 0.55, B: float = 1.5) -> F64: ...


def inverse_propensities(
    label_counts: npt.ArrayLike | Mapping[Any, int], n_rows: int, *, A: float = 0.55, B: float = 1.5
) -> F64 | LabelWeights:
    """Return the weight ``1 + C (count + B)^-A`` of each label, with ``C = (ln n_rows - 1) (B + 1)^A``.

    ``label_counts``, the rows of each label, and ``n_rows`` are those of the training data. The usual A and B are 0.5
    and 0.4 for Wikipedia data, 0.6 and 2.6 for Amazon data, and the defaults for other data. With fewer than three
    rows, where the formula is negative, all weights are 1. Counts by label name give weights by label name.

    >>> inverse_propensities([1, 10, 100], 1000).round(2)
    array([6.91, 3.55, 1.77])
    """
    if isinstance(label_counts, Mapping):
        *listed, unseen = inverse_propensities([*label_counts.values(), 0], n_rows, A=A, B=B).tolist()
        return LabelWeights(dict(zip(label_counts, listed, strict=True)), unseen)
    counts = np.asarray(label_counts, dtype=np.float64)
    if counts.ndim != 1 or not (np.isfinite(counts) & (counts >= 0)).all():
        raise LabelwoodError("propensities: label_counts must be one finite count, at least 0, per label")
    if n_rows < 1:
        raise LabelwoodError(f"propensities: n_rows must be at least 1; got {n_rows}")
    for name, value in (("A", A), ("B", B)):
        if not (np.isfinite(value) and value > 0):
            raise LabelwoodError(f"propensities: {name} must be greater than 0; got {value!r}")
    C = max(np.log(n_rows) - 1, 0.0) * (B + 1) ** A
    inverse: F64 = 1 + C * (counts + B) ** -A
    return inverse


def propensity_scored(
    Y: CSR, judged: Judged, inv_propensity: npt.ArrayLike, ks: tuple[int, ...], *, normalised: bool = True
) -> dict[str, float]:
    """Compute ``PSP@k`` and ``PSnDCG@k``; if normalised, divided by the value of the best ranking.

    The mean over rows is divided by the mean over rows, as in the code of the XMC repository.
    """
    weights = check_weights(inv_propensity, judged.n_labels)
    lists = judged.weighted(weights)
    best = best_ranking(Y, weights, max(ks)) if normalised else None
    found: dict[str, float] = {}
    for name, metric in PROPENSITY_SCORED.items():
        for k in ks:
            reachable = 1.0 if best is None else metric(best, k)
            found[f"{name}@{k}"] = metric(lists, k) / reachable if reachable > 0 else 0.0
    return found


def check_weights(inv_propensity: Any, n_labels: int) -> F64:
    """Check inverse propensities, one finite, positive value per label; return them as float64."""
    weights = np.asarray(inv_propensity, dtype=np.float64)
    if weights.shape != (n_labels,):
        raise LabelwoodError(
            f"metrics: inv_propensity must hold one value for each of the {n_labels} labels of Y; "
            f"got shape {weights.shape}"
        )
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise LabelwoodError("metrics: inv_propensity must be finite and greater than 0")
    return weights
