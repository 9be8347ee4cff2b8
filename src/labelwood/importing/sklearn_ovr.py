"""scikit-learn's ``OneVsRestClassifier`` of linear models, as an object in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.importing.foreign_tree import ForeignTree, assemble, trained_elsewhere
from labelwood.label_names import LabelNames
from labelwood.methods.label_tree.base import LinearModel
from labelwood.methods.label_tree.linear_tree import OneVsRest
from labelwood.packed.label_tree import LOGISTIC

_OWNER = "from_sklearn"
_CERTAIN = 100.0  # of a label that every training row has, or none


def read_object(model: Any) -> LinearModel:
    """The one-vs-rest model of a fitted ``OneVsRestClassifier`` whose members have ``coef_`` and ``intercept_``."""
    members, classes = getattr(model, "estimators_", None), getattr(model, "classes_", None)
    if members is None or classes is None:
        raise LabelwoodError(f"{_OWNER}: model must be a fitted OneVsRestClassifier; got {type(model).__name__}")
    n_labels, n_features = len(classes), int(model.n_features_in_)
    if len(members) != n_labels:
        raise LabelwoodError(
            f"{_OWNER}: model must have one classifier per label; it has {len(members)} for {n_labels}"
        )
    bias = np.zeros(n_labels + 1)
    parts = []
    for number, member in enumerate(members):
        if not hasattr(member, "coef_"):  # scikit-learn's stand-in for a label without examples of both kinds
            if not hasattr(member, "y_"):
                raise LabelwoodError(f"{_OWNER}: the classifiers must be linear; got {type(member).__name__}")
            bias[number + 1] = _CERTAIN if np.ravel(member.y_)[0] else -_CERTAIN
            continue
        weights = member.coef_
        weights = np.ravel(weights.toarray() if hasattr(weights, "toarray") else weights)
        if len(weights) != n_features:
            raise LabelwoodError(f"{_OWNER}: a classifier must have {n_features} weights; it has {len(weights)}")
        bias[number + 1] = float(np.ravel(member.intercept_)[0])
        used = np.flatnonzero(weights)
        parts.append((np.full(len(used), number + 1), used, weights[used].astype(np.float32)))
    node, feature, weight = (np.concatenate([np.empty(0, int), *arrays]) for arrays in zip(*parts, strict=True))
    tree = ForeignTree(
        np.concatenate([[-1], np.zeros(n_labels, np.int64)]),
        np.concatenate([[-1], np.arange(n_labels)]),
        node.astype(np.int64),
        feature.astype(np.int64),
        weight,
        bias,
    )
    estimator = OneVsRest(loss="logistic", intercept=0.0, bias=1.0, normalize=False, weight_dtype="float32")
    found = assemble(estimator, [tree], n_features, LOGISTIC, source="scikit-learn")
    names = LabelNames.of(classes.tolist())
    plain = [int(name) for name in classes.tolist()] if classes.dtype.kind in "iu" else None
    if plain == list(range(n_labels)):
        names = LabelNames.columns(n_labels)
    return estimator.from_trees(found.trees_, names, trained_elsewhere("scikit-learn"))
