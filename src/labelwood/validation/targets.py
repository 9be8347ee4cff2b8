"""Reading and checking Y: label names, the label matrix, and sizes that fit X."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from labelwood.errors import LabelwoodError, LabelwoodWarning
from labelwood.label_names import LabelNames, name_problem
from labelwood.sparse import CSR, I64, from_scipy
from labelwood.validation.column_names import column_names, is_missing, n_dimensions


def read_labels(Y: Any, label_names: Sequence[Hashable] | None, owner: str) -> tuple[LabelNames, CSR]:
    """The label names and the label matrix of a user's Y."""
    if is_matrix(Y):
        matrix = read_matrix(Y, owner=owner)
        label_names = column_names(Y) if label_names is None else label_names
        if label_names is None:
            return LabelNames.columns(matrix.n_cols), matrix
        n_distinct = len(distinct_names([list(label_names)], owner=owner))
        if len(label_names) != matrix.n_cols or n_distinct != matrix.n_cols:
            raise LabelwoodError(
                f"{owner}: label_names must be {matrix.n_cols} distinct names, one for each column of Y; "
                f"got {len(label_names)}, of which {n_distinct} distinct"
            )
        return LabelNames.of(label_names), matrix
    if label_names is not None:
        raise LabelwoodError(f"{owner}: label_names must be left out when the rows of Y already hold names")
    rows = read_rows(Y, owner=owner)
    distinct = distinct_names(rows, owner=owner)
    index = {name: label for label, name in enumerate(distinct)}
    return LabelNames.of(distinct), to_csr(rows, index, len(distinct), owner=owner)


def check_sizes(X: CSR, Y: CSR, owner: str) -> None:
    """Raise unless X and Y have the same number of rows, and there is something to learn."""
    check_lengths(X.n_rows, Y.n_rows, owner)
    for count, what, got in (
        (X.n_rows, "row", "0"),
        # scikit-learn's checks look for the second half of this message
        (X.n_cols, "feature", f"0 feature(s) (shape=({X.n_rows}, 0)) while a minimum of 1 is required."),
        (Y.n_cols, "label", "0"),
    ):
        if count == 0:
            raise LabelwoodError(f"{owner}: at least one {what} is needed to learn from; got {got}")
    if Y.nnz == 0:
        raise LabelwoodError(f"{owner}: at least one row must have a label; Y is empty")


def check_lengths(n_rows: int, n_label_rows: int, owner: str) -> None:
    """Refuse X and Y of different lengths."""
    if n_rows != n_label_rows:
        raise LabelwoodError(f"{owner}: X and Y must have the same number of rows; got {n_rows} and {n_label_rows}")


def is_matrix(Y: Any) -> bool:
    """True if Y is an indicator matrix (CSR, scipy sparse, 2-d array or table) rather than rows of names."""
    import scipy.sparse as sp  # noqa: PLC0415 - keeps scipy out of the import of the package

    return isinstance(Y, CSR) or bool(sp.issparse(Y)) or n_dimensions(Y) == 2


def read_matrix(Y: Any, *, owner: str) -> CSR:
    """An indicator matrix as a CSR of ones; values other than 0 and 1 are refused."""
    import scipy.sparse as sp  # noqa: PLC0415 - as above

    if isinstance(Y, CSR):
        matrix = Y
    else:
        given: Any = Y if sp.issparse(Y) else np.asarray(Y)
        if given.ndim != 2:
            raise LabelwoodError(f"{owner}: a Y matrix must be two-dimensional; got {given.ndim}-d input")
        if given.dtype.kind not in "biuf":
            raise LabelwoodError(
                f"{owner}: a Y matrix must hold 0 and 1; got dtype {given.dtype}. "
                "Label names go in as lists: Y.tolist()."
            )
        matrix = from_scipy(sp.csr_array(given))
    values = matrix.data
    if not ((values == 0) | (values == 1)).all():
        wrong = values[(values != 0) & (values != 1)][0]
        raise LabelwoodError(f"{owner}: a Y matrix must hold 0 and 1; got {wrong:g}. Use (Y != 0) if any value counts.")
    if not values.all():
        kept = matrix.to_scipy().copy()
        kept.eliminate_zeros()
        matrix = from_scipy(kept)
    return matrix


def read_rows(Y: Any, *, owner: str) -> list[list[Hashable]]:
    """Rows of label names as lists; a row that is not a collection of names is refused with advice.

    The values of a one-dimensional array or column are labels, one per row: the target of a classifier.
    """
    if Y is None:
        raise LabelwoodError(f"{owner}: requires y to be passed, but the target y is None")
    if isinstance(Y, str | bytes) or not isinstance(Y, Iterable):
        raise LabelwoodError(
            f"{owner}: Y must be a 0/1 matrix or one list of label names per row; got {type(Y).__name__}"
        )
    if n_dimensions(Y) == 1:
        values = np.asarray(Y).tolist()
        if all(isinstance(value, str | int | float) for value in values):
            _check_single(values, owner)
            return [[value] for value in values]
    return [_read_row(row, position, owner) for position, row in enumerate(Y)]


def _check_single(labels: list[Any], owner: str) -> None:
    """Refuse missing labels in a column with a label per row, and warn if it looks like one with several."""
    missing = next((row for row, label in enumerate(labels) if is_missing(label)), None)
    if missing is not None:
        raise LabelwoodError(
            f"{owner}: each row of Y must have a label; the one in row {missing} is missing ({labels[missing]}). "
            "Lists of labels may be empty."
        )
    for mark in ";|":
        several = next((label for label in labels if isinstance(label, str) and mark in label), None)
        if several is not None:
            warnings.warn(
                f"{owner}: Y has a label per row, such as {several[:40]!r}; if {mark!r} separates labels, pass lists, "
                f"as in Y.str.split({mark!r})",
                LabelwoodWarning,
                stacklevel=2,
            )
            return


def named_rows(matrix: CSR, names: Sequence[Hashable]) -> list[list[Hashable]]:
    """The rows of an indicator matrix as lists of the names of their columns."""
    bounds, ids = matrix.indptr.tolist(), matrix.indices.tolist()
    return [[names[i] for i in ids[bounds[row] : bounds[row + 1]]] for row in range(matrix.n_rows)]


def _read_row(row: Any, position: int, owner: str) -> list[Hashable]:
    if type(row) in (list, tuple):
        return row  # type: ignore[no-any-return]  # its members are checked when names get their ids
    if isinstance(row, set | frozenset):
        # A set of strings iterates in another order in every process: sort it.
        try:
            return sorted(row)
        except TypeError:
            return sorted(row, key=lambda name: (type(name).__name__, repr(name)))
    if isinstance(row, np.ndarray) and row.ndim == 1:
        names: list[Hashable] = row.tolist()
        return names
    if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
        raise LabelwoodError(
            f"{owner}: each row of Y must be a list of label names; got {row!r} in row {position}. "
            "A row with one label is a list of one: [label]."
        )
    return list(row)


def distinct_names(rows: list[list[Hashable]], *, owner: str) -> list[Hashable]:
    """The names in the rows: sorted if they can be compared, else in order of first appearance."""
    try:
        seen = list(dict.fromkeys(chain.from_iterable(rows)))
    except TypeError as error:
        raise LabelwoodError(f"{owner}: a label name must be hashable, such as a string or a tuple; {error}") from None
    if any(isinstance(name, float | np.floating) and math.isnan(name) for name in seen):
        raise LabelwoodError(f"{owner}: a label name must not be NaN; Y contains missing values")
    problem = next((problem for name in seen if (problem := name_problem(name)) is not None), None)
    if problem is not None:
        raise LabelwoodError(f"{owner}: {problem}")
    try:
        return sorted(seen)  # type: ignore[type-var]  # names that do not compare raise TypeError
    except TypeError:
        return seen


def to_csr(rows: list[list[Hashable]], index: Mapping[Any, int], n_cols: int, *, owner: str) -> CSR:
    """Rows of names as a CSR of ones; names that ``index`` lacks become further columns as they appear."""
    import scipy.sparse as sp  # noqa: PLC0415 - as above

    indptr: I64 = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    unseen: dict[Any, int] = {}
    width = max(n_cols, len(index))
    try:
        ids = [
            index[name] if name in index else unseen.setdefault(name, width + len(unseen))
            for name in chain.from_iterable(rows)
        ]
    except TypeError as error:
        raise LabelwoodError(f"{owner}: a label name must be hashable, such as a string or a tuple; {error}") from None
    shape = (len(rows), width + len(unseen))
    matrix = from_scipy(sp.csr_array((np.ones(len(ids), np.float32), np.array(ids, np.int32), indptr), shape=shape))
    return CSR(matrix.indptr, matrix.indices, np.ones_like(matrix.data), matrix.n_cols)
