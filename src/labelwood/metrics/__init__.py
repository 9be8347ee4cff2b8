"""Metrics of top-k predictions; ``docs/metrics.md`` has the formulas.

The truth is a label matrix, predictions are :class:`~labelwood.sparse.TopK`, values are fractions in [0, 1]. Time and
memory grow with the number of predictions, true labels and labels, not with rows x labels.

>>> from labelwood.sparse import TopK, from_lists
>>> import numpy as np
>>> Y = from_lists([[0, 2], [1]], n_cols=3)
>>> scores = np.array([[0.9, 0.5, 0.5], [0.8, 0.1, 0.0]], np.float32)
>>> top = TopK(np.array([[2, 1, 0], [0, 1, -1]], np.int32), scores)
>>> precision_at_k(Y, top, 1)
0.5
>>> precision_at_k(Y, top, 2)  # places 2 and 3 of the first row are tied: half a hit
0.625
"""

from labelwood.metrics.api import (
    coverage_at_k,
    evaluate,
    f1_at_k,
    label_counts,
    macro_f1_at_k,
    ndcg_at_k,
    ndcg_of_all_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
    report_by_frequency,
)
from labelwood.metrics.bootstrap import Interval, bootstrap_intervals, paired_intervals, share_interval
from labelwood.metrics.by_frequency import BINS, frequency_bins
from labelwood.metrics.propensity import inverse_propensities, propensities
from labelwood.metrics.reliability import Reliability, calibration_error, reliability, set_scores
from labelwood.metrics.scorers import Scorer, scorer

__all__ = [
    "BINS",
    "Interval",
    "Reliability",
    "Scorer",
    "bootstrap_intervals",
    "calibration_error",
    "coverage_at_k",
    "evaluate",
    "f1_at_k",
    "frequency_bins",
    "inverse_propensities",
    "label_counts",
    "macro_f1_at_k",
    "ndcg_at_k",
    "ndcg_of_all_at_k",
    "paired_intervals",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "reliability",
    "report_by_frequency",
    "scorer",
    "set_scores",
    "share_interval",
]
