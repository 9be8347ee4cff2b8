"""Labelwood in MLflow: a model directory as a ``pyfunc`` model that returns names and scores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelwood import __version__
from labelwood.adapters._required import required
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods import load
from labelwood.methods.text_classifier import TextClassifier
from labelwood.validation.column_names import column_names

Model = TreeEstimator | TextClassifier | str | os.PathLike[str]

_K = 5
_TEXT = "text"


def save_model(path: str | os.PathLike[str], model: Model, **options: Any) -> None:
    """Write an MLflow model to a local path.

    ``model`` is a fitted model of Labelwood, or the directory it was saved to; ``options`` go to
    ``mlflow.pyfunc.save_model``.
    """
    with _arguments(model, options) as arguments:
        required("mlflow.pyfunc", extra="mlflow").save_model(path=os.fspath(path), **arguments)


def log_model(model: Model, name: str = "model", **options: Any) -> Any:
    """Log a model to the current run and return MLflow's ``ModelInfo``; ``options`` go to ``mlflow.pyfunc.log_model``.

    ``mlflow.pyfunc.load_model`` brings it back. Its ``predict`` takes what the model takes (texts also as a table with
    one column or a column ``text``) and returns a table with the columns ``labels`` and ``scores``, a list each, best
    first; ``params={"k": 3}`` sets their length.
    """
    with _arguments(model, options) as arguments:
        return required("mlflow.pyfunc", extra="mlflow").log_model(name=name, **arguments)


@contextmanager
def _arguments(model: Model, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments for MLflow: the directory, this module to load it, and ``k`` as a parameter."""
    signature = required("mlflow.models.signature", extra="mlflow")
    types = required("mlflow.types", extra="mlflow")
    k = types.schema.ParamSchema([types.schema.ParamSpec("k", types.DataType.long, _K)])
    with tempfile.TemporaryDirectory() as folder:
        if not isinstance(model, str | os.PathLike):
            model.save(Path(folder) / "model")
            model = Path(folder) / "model"
        load(model, verify=True)  # never log a model that cannot be loaded
        yield {
            "loader_module": __name__,
            "data_path": os.fspath(model),
            "signature": signature.ModelSignature(params=k),
            "pip_requirements": [f"labelwood[mlflow]=={__version__}"],
            **options,
        }


def _load_pyfunc(path: str) -> _Predictor:
    """MLflow calls this to load a model."""
    return _Predictor(load(path))


class _Predictor:
    """The object that MLflow asks for predictions."""

    def __init__(self, model: TreeEstimator | TextClassifier) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """A table of labels and scores, one row per input."""
        rows = _texts(data) if self.model.takes == "text" else data
        labels, scores = self.model.predict_topk(rows, k=int((params or {}).get("k", _K)))
        found = [
            (names[:count].tolist(), values[:count].tolist())
            for names, values in zip(labels, scores, strict=True)
            for count in [sum(name is not None and name != -1 for name in names)]
        ]
        frame: Any = required("pandas", extra="mlflow").DataFrame
        return frame({"labels": [row[0] for row in found], "scores": [row[1] for row in found]})


def _texts(data: Any) -> list[Any]:
    columns = column_names(data)
    if columns is None:
        return list(data)
    if len(columns) > 1 and _TEXT not in columns:
        raise LabelwoodError(
            f"mlflow: a table of texts must have one column, or a column 'text'; got {', '.join(columns)}"
        )
    return list(data[_TEXT if _TEXT in columns else columns[0]])
