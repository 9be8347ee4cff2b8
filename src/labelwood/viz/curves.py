"""Figures of tree models as curves: quality against trees, nodes and size, depth, recall, objective.

Each function takes fitted models by name and returns a :class:`Figure`; :mod:`labelwood.viz.draw` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods.forest.split_plots import by_level
from labelwood.metrics import Interval, bootstrap_intervals, reliability, share_interval
from labelwood.metrics.definitions import label_totals
from labelwood.metrics.judged import judge
from labelwood.packed.routed_forest import RoutedForest
from labelwood.sparse import CSR, TopK
from labelwood.viz.outline import outline
from labelwood.viz.tree_prefixes import prefixes

Models = Mapping[str, TreeEstimator]
_RESAMPLES = 400  # of the rows, for an interval that is drawn and not printed


Kind = Literal["line", "bars", "reference"]


@dataclass(frozen=True)
class Curve:
    """Measured points and optionally the ends of an interval around each.

    A ``line`` connects the points, ``bars`` stand for counts, and a ``reference`` is a line that was not measured.
    """

    name: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    kind: Kind = "line"


@dataclass(frozen=True)
class Figure:
    """Curves and the labels of the axes; ``log_x`` spaces x by ratio, ``whole_x`` has whole numbers at the ticks."""

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    whole_x: bool = False


@dataclass(frozen=True)
class Measured:
    """Rows to predict and their labels in the ids of one model."""

    X: CSR
    truth: CSR


def against_trees(models: Models, data: Mapping[str, Measured], k: int, *, nodes: bool = False) -> Figure:
    """P@k of the first trees of each model, against the number of trees, or of their ``nodes``."""
    curves = []
    for name, model in models.items():
        rows = data[name]
        points = [
            (float(n_nodes if nodes else n_trees), _precision(rows.truth, top, k))
            for n_trees, n_nodes, top in prefixes(model, rows.X, k)
        ]
        curves.append(_with_intervals(name, [x for x, _ in points], [interval for _, interval in points]))
    x_label = "nodes" if nodes else "trees"
    return Figure(x_label, f"P@{k}, percent, and 95% interval", tuple(curves), log_x=True, whole_x=True)


def against_size(models: Models, data: Mapping[str, Measured], k: int) -> Figure:
    """P@k of each model against the bytes of its arrays."""
    curves = []
    for name, model in models.items():
        size = sum(array.nbytes for array in model.to_saved()[1].values())
        quality = _precision(data[name].truth, model.topk_ids(data[name].X, k), k)
        curves.append(_with_intervals(name, [size / 1e6], [quality]))
    return Figure("model, MB", f"P@{k}, percent, and 95% interval", tuple(curves), log_x=True)


def _precision(truth: CSR, top: TopK, k: int) -> Interval:
    return bootstrap_intervals(truth, top, [k], n_resamples=_RESAMPLES)[f"P@{k}"]


def _with_intervals(name: str, x: list[float], found: list[Interval]) -> Curve:
    """A curve of fractions with intervals, in percent."""
    mean, low, high = ([100 * value for value in column] for column in zip(*found, strict=True))
    return Curve(name, x, mean, low, high)


def recall_by_frequency(models: Models, data: Mapping[str, Measured], k: int) -> Figure:
    """The share of true labels found among the first k, by the number of training rows of the label."""
    curves = []
    for name, model in models.items():
        rows = data[name]
        totals = label_totals(judge(rows.truth, model.topk_ids(rows.X, k)), k)
        counts = np.zeros(rows.truth.n_cols)
        counts[: model.n_labels_] = model.label_counts_
        octave = np.where(counts > 0, np.floor(np.log2(np.maximum(counts, 1))), -1).astype(int)
        x, found = [], []
        for number in np.unique(octave[(totals.n_positive > 0) & (counts > 0)]).tolist():
            inside = octave == number
            x.append(float(2**number))
            found.append(share_interval(float(totals.hits[inside].sum()), float(totals.n_positive[inside].sum())))
        curves.append(_with_intervals(name, x, found))
    y_label = f"R@{k} of those labels, percent, and 95% interval"
    return Figure("rows of a label in training, from", y_label, tuple(curves), log_x=True, whole_x=True)


def by_depth(models: Models) -> Figure:
    """The number of labels at each depth of the first tree; of leaves in a forest."""
    curves = []
    kinds = set()
    for name, model in models.items():
        tree = outline(model)
        kinds.add(tree.kind)
        depth = np.zeros(tree.n_nodes, np.int64)
        for node in range(tree.n_nodes):
            depth[tree.child_ptr[node] : tree.child_ptr[node + 1]] = depth[node] + 1
        leaves = np.diff(tree.child_ptr) == 0
        depths, counts = np.unique(depth[leaves], return_counts=True)
        curves.append(Curve(name, depths.astype(float).tolist(), counts.astype(float).tolist(), kind="bars"))
    return Figure("depth", " or ".join(sorted(kinds)), tuple(curves), whole_x=True)


def objective_by_depth(models: Models) -> Figure:
    """LdSM's objective J of the splits on each level: the median and the 10th to 90th percentile."""
    curves = []
    for name, model in models.items():
        splits = getattr(model, "splits_", None)
        forest = model.trees()
        if splits is None or not isinstance(forest, RoutedForest):
            raise LabelwoodError(f"plot: J is an objective of ldsm-forest; {name} is {model.method_name}")
        low, middle, high = by_level(forest, splits[:, 0]).T.tolist()
        curves.append(Curve(name, [float(d) for d in range(len(middle))], middle, low, high))
    return Figure("depth", "J of the splits: median, 10th to 90th percentile", tuple(curves), whole_x=True)


def reliable(models: Models, data: Mapping[str, Measured], k: int) -> Figure:
    """The share of right labels against their score, of the first k of each row; calibrated is the diagonal."""
    curves = [Curve("calibrated", [0.0, 1.0], [0.0, 1.0], kind="reference")]
    for name, model in models.items():
        found = reliability(data[name].truth, model.topk_ids(data[name].X, k))
        shares = [share_interval(share * size, size) for share, size in zip(found.right, found.size, strict=True)]
        low, high = [share.low for share in shares], [share.high for share in shares]
        title = f"{name}, error {100 * found.error:.1f} %"
        curves.append(Curve(title, found.score.tolist(), found.right.tolist(), low, high))
    return Figure("score", "share of labels that are right, and 95% interval", tuple(curves))


FIGURES: Mapping[str, tuple[str, bool, Callable[..., Figure]]] = {
    # name: what it shows, whether it needs data, how it is made
    "trees": ("quality against the number of trees", True, against_trees),
    "nodes": ("quality against the number of nodes", True, partial(against_trees, nodes=True)),
    "size": ("quality against the size of models", True, against_size),
    "recall": ("recall of labels against their frequency in training", True, recall_by_frequency),
    "reliability": ("share of right labels against their score", True, reliable),
    "depth": ("labels against depth", False, by_depth),
    "objective": ("LdSM's objective J of the splits against depth", False, objective_by_depth),
}  # fmt: skip
