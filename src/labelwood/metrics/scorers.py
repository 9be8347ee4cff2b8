"""Metrics as scikit-learn scorers: ``GridSearchCV(LinearTree(), grid, scoring=scorer("P@5"))``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.metrics.definitions import BY_LABEL, BY_ROW, PROPENSITY_SCORED, label_totals
from labelwood.metrics.judged import judge
from labelwood.metrics.propensity import propensity_scored


@dataclass(frozen=True, eq=False)
class Scorer:
    """A picklable function ``(estimator, X, Y) -> float``; higher is better."""

    metric: str
    k: int
    list_length: int
    inv_propensity: Any = field(default=None, repr=False)

    def __call__(self, estimator: Any, X: Any, Y: Any) -> float:
        """Score a fitted estimator of this library, or a pipeline or search that ends in one.

        Y has any form that ``fit`` takes.
        """
        estimator, X = _last_step(estimator, X)
        truth = estimator.encode_labels(Y)
        judged = judge(truth, estimator.topk_ids(X, self.list_length))
        if self.metric in BY_ROW:
            return BY_ROW[self.metric](judged, self.k)
        if self.metric in BY_LABEL:
            return BY_LABEL[self.metric](label_totals(judged, self.k))
        scored = propensity_scored(truth, judged, self.inv_propensity, (self.k,))
        return scored[f"{self.metric}@{self.k}"]


def scorer(name: str, *, inv_propensity: npt.ArrayLike | None = None, list_length: int | None = None) -> Scorer:
    """Make a scikit-learn scorer for a metric, with a name as in :func:`labelwood.metrics.evaluate`: ``"nDCG@5"``.

    PSP and PSnDCG need ``inv_propensity``, one value per label of Y. ``list_length`` is the number of labels to
    predict, by default k; a longer list resolves ties beyond place k.

    >>> scorer("P@5")
    Scorer(metric='P', k=5, list_length=5)
    """
    known = (*BY_ROW, *BY_LABEL, *PROPENSITY_SCORED)
    match = re.fullmatch(r"(\w+)@([1-9]\d*)", name)
    if match is None or match[1] not in known:
        raise LabelwoodError(
            f"scorer: name must be one of {', '.join(known)}, followed by @k, such as P@5; got {name!r}"
        )
    metric, k = match[1], int(match[2])
    if metric in PROPENSITY_SCORED and inv_propensity is None:
        raise LabelwoodError(f"scorer: inv_propensity must be given for {name}; got None. See inverse_propensities().")
    if list_length is not None and list_length < k:
        raise LabelwoodError(f"scorer: list_length must be at least k, which is {k}; got {list_length}")
    return Scorer(metric, k, list_length or k, inv_propensity)


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator at the end of searches and pipelines, and X as it arrives there."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator[-1]
        else:
            return estimator, X
