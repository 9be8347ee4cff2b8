"""The formats of other tools, and which of them a path holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelwood.errors import FormatError, LabelwoodError, nearest
from labelwood.importing import libmultilabel, napkinxc, omikuji, pecos, sklearn_ovr
from labelwood.label_names import LabelNames, name_problem
from labelwood.methods.label_tree.base import LinearModel
from labelwood.sparse import MAX_COLUMNS


class _Format(NamedTuple):
    is_model: Callable[[Path], bool]
    read: Callable[[Path], LinearModel]


FORMATS: dict[str, _Format] = {
    "omikuji": _Format(omikuji.is_model, omikuji.read),
    "pecos": _Format(pecos.is_model, pecos.read),
    "napkinxc": _Format(napkinxc.is_model, napkinxc.read),
    "libmultilabel": _Format(libmultilabel.is_model, libmultilabel.read),
}


def import_model(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label_names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> LinearModel:
    """The model that another tool saved, as a fitted ``LinearTree`` or ``OneVsRest``.

    ``format`` is ``"omikuji"``, ``"pecos"``, ``"napkinxc"`` or ``"libmultilabel"``; by default the files tell. A label
    is named by its number in the other tool, or by ``label_names[number]``. ``n_features`` is the number of columns of
    your rows, if it is more than the files tell: napkinXC does not count features that no training row has.

    The model gives the labels and scores that the tool gives for the same vectors. It can be saved, explained, shrunk,
    calibrated and served like any other.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(2, "no such file or directory", str(source))
    name = _format_of(source) if format is None else format
    if name not in FORMATS:
        raise LabelwoodError(f"format must be one of {', '.join(FORMATS)}; got {format!r}{nearest(format, FORMATS)}")
    model = FORMATS[name].read(source)
    if n_features is not None:
        model = _widened(model, n_features, source)
    return model if label_names is None else _with_names(model, label_names, source)


def from_sklearn(model: Any) -> LinearModel:
    """The ``OneVsRest`` of a fitted scikit-learn ``OneVsRestClassifier`` of linear models.

    Scores are the sigmoids of the decision function: the probabilities of ``LogisticRegression``, and for other linear
    models the same order of labels.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X, Y = np.eye(3), np.array([[1, 0], [0, 1], [1, 1]])
    >>> imported = from_sklearn(OneVsRestClassifier(LogisticRegression()).fit(X, Y))
    >>> imported.predict_topk(X[:1], k=1)[0].tolist()
    [[0]]
    """
    return sklearn_ovr.read_object(model)


def _format_of(path: Path) -> str:
    for name, one in FORMATS.items():
        if one.is_model(path):
            return name
    if path.suffix in (".joblib", ".pkl", ".pickle"):
        raise FormatError(
            f"{path}: a pickle may run any code and is not opened; in Python, use labelwood.importing.from_sklearn"
        )
    raise FormatError(f"{path}: no model of {', '.join(FORMATS)} is here")


def _widened(model: LinearModel, n_features: int, source: Path) -> LinearModel:
    if not model.n_features_in_ <= n_features <= MAX_COLUMNS:
        raise LabelwoodError(f"{source}: n_features must be at least {model.n_features_in_}; got {n_features}")
    trees = [replace(packed, n_features=n_features) for packed in model.trees_]
    return model.from_trees(trees, model.label_names, model.trained_)


def _with_names(model: LinearModel, names: Sequence[str], source: Path) -> LinearModel:
    numbers = np.asarray(model.classes_)
    if len(numbers) and int(numbers.max()) >= len(names):
        raise LabelwoodError(f"{source}: label {numbers.max()} has no name; there are {len(names)} names")
    named = [names[number] for number in numbers.tolist()]
    problem = next((problem for name in named if (problem := name_problem(name)) is not None), None)
    if problem is not None:
        raise LabelwoodError(f"{source}: {problem}")
    if len(set(named)) != len(named):
        raise LabelwoodError(f"{source}: label names must be distinct")
    return model.from_trees(model.trees_, LabelNames.of(named), model.trained_)
