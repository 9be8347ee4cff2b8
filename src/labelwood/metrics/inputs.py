"""The forms in which users have truth and predictions, brought to label ids: the one entry of every metric.

The truth is a label matrix (:class:`~labelwood.sparse.CSR`, scipy, a 0/1 array or a table with a column per label) or
one list of label names per row. A prediction is what ``predict_topk`` returns, a :class:`~labelwood.sparse.TopK`, or
one list of labels per row, best first. Predictions without scores have no ties.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, F64, TopK
from labelwood.validation.column_names import column_names
from labelwood.validation.targets import distinct_names, is_matrix, read_matrix, read_rows, to_csr

Truth = Any  # a label matrix in any form, or rows of label names
Lists = Any  # (labels, scores), or rows of labels
PerLabel = npt.ArrayLike | Mapping[Any, float]  # one value per column of Y, or by name

_OWNER = "metrics"


class Given(NamedTuple):
    """Truth and prediction in label ids; ``names`` are the names of the ids, None if labels are columns of Y."""

    truth: CSR
    top: TopK
    names: Sequence[Hashable] | None

    def per_label(self, values: PerLabel, parameter: str) -> npt.ArrayLike:
        """Values in the order of the label ids; a mapping is looked up by name."""
        if isinstance(values, Mapping):
            names = range(self.truth.n_cols) if self.names is None else self.names
            try:
                return np.array([values[name] for name in names], np.float64)
            except KeyError as error:
                raise LabelwoodError(
                    f"{_OWNER}: {parameter} must have a value for each label; it lacks {error}. "
                    "Make it with label_counts and inverse_propensities, which know labels without rows."
                ) from None
        if self.names is not None:
            raise LabelwoodError(
                f"{_OWNER}: {parameter} must be a dict from label name to value if Y holds names; "
                f"got {type(values).__name__}"
            )
        return values


def read(Y: Truth, top: Lists) -> Given:
    """Truth and prediction of a user, in ids of the same labels."""
    labels, scores = _split(top)
    if is_matrix(Y):
        names = column_names(Y)
        matrix = read_matrix(Y, owner=_OWNER)
        if labels.dtype.kind not in "OUS":
            return Given(matrix, TopK(labels, scores), None)
        if names is None:
            raise LabelwoodError(
                f"{_OWNER}: predicted labels must be columns of Y if Y is a matrix; got names such as "
                f"{_first_name(labels)!r}. Pass Y as one list of label names per row."
            )
        known: list[Hashable] = list(names)
    else:
        rows = read_rows(Y, owner=_OWNER)
        predicted = [name for name in labels.ravel().tolist() if not _is_padding(name)]
        known = distinct_names([*rows, predicted], owner=_OWNER)
        matrix = to_csr(rows, _index(known), len(known), owner=_OWNER)
    return Given(matrix, TopK(_ids(labels, _index(known)), scores), known)


def read_sets(Y: Truth, predicted: Truth) -> tuple[CSR, CSR]:
    """True and predicted label sets, both matrices or both rows of names, in ids of the same labels."""
    if is_matrix(Y) != is_matrix(predicted):
        raise LabelwoodError(f"{_OWNER}: Y and the predicted sets must both be matrices or both rows of label names")
    if is_matrix(Y):
        return read_matrix(Y, owner=_OWNER), read_matrix(predicted, owner=_OWNER)
    rows, said = read_rows(Y, owner=_OWNER), read_rows(predicted, owner=_OWNER)
    index = _index(distinct_names([*rows, *said], owner=_OWNER))
    return to_csr(rows, index, len(index), owner=_OWNER), to_csr(said, index, len(index), owner=_OWNER)


def _split(top: Lists) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Labels and scores of a prediction, both [rows, width]."""
    if isinstance(top, tuple) and len(top) == 2:
        return np.asarray(top[0]), np.asarray(top[1])
    if isinstance(top, np.ndarray) and top.ndim == 2:
        labels: npt.NDArray[Any] = top
    else:
        labels = _padded(read_rows(top, owner=_OWNER))
    falling: F64 = np.arange(labels.shape[1], 0, -1, dtype=np.float64)
    return labels, np.broadcast_to(falling, labels.shape)


def _padded(rows: list[list[Hashable]]) -> npt.NDArray[Any]:
    table = np.full((len(rows), max(map(len, rows), default=0)), None, dtype=object)
    for place, row in enumerate(rows):
        for rank, label in enumerate(row):
            table[place, rank] = label
    flat = table.ravel().tolist()
    if any(label is not None and not isinstance(label, int | np.integer) for label in flat):
        return table
    return np.array([-1 if label is None else label for label in flat], np.int64).reshape(table.shape)


def _ids(labels: npt.NDArray[Any], index: Mapping[Any, int]) -> npt.NDArray[np.int32]:
    """Names as ids, -1 for padding; a name that no column has is an error."""
    try:
        ids = [-1 if _is_padding(name) else index[name] for name in labels.ravel().tolist()]
    except KeyError as error:
        raise LabelwoodError(f"{_OWNER}: a predicted label must be a column of Y; got {error}") from None
    return np.array(ids, np.int32).reshape(labels.shape)


def _index(names: Sequence[Hashable]) -> dict[Hashable, int]:
    return {name: label for label, name in enumerate(names)}


def _is_padding(name: Any) -> bool:
    return name is None or (isinstance(name, int) and name == -1)


def _first_name(labels: npt.NDArray[Any]) -> Any:
    return next((name for name in labels.ravel().tolist() if name is not None), None)
