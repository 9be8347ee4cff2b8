"""Rows of a stream: matrices whose columns may grow in number, or dicts from feature id to value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, MAX_COLUMNS, as_features

MAX_FEATURE = 2**63 - 1
LARGEST_VALUE = 1e15


def read_features(X: Any, n_known: int, *, owner: str) -> CSR:
    """What the user calls X. Indices are int64 where a feature id needs it, else int32.

    A matrix must have at least the ``n_known`` columns of earlier ones: fewer would mean other features. Duplicate
    entries are summed. A list of dicts from feature id (0 to 2^63 - 1) to value says nothing about columns.
    """
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _from_dicts(X, n_known, owner)
    shape = getattr(X, "shape", None)
    wide = shape is not None and len(shape) == 2 and shape[1] > MAX_COLUMNS
    features = _wide(X, owner) if wide else as_features(X, owner=owner)
    if features.n_cols < n_known:
        raise LabelwoodError(
            f"{owner}: X has {features.n_cols} features, but {owner} is expecting {n_known} features as input; "
            "columns may be added, never taken away"
        )
    return features


def check_size(X: CSR, owner: str) -> None:
    """Refuse values that are so large that sums of their squares leave float32: one of them would spoil the model."""
    if X.nnz and np.abs(X.data).max() > LARGEST_VALUE:
        raise LabelwoodError(
            f"{owner}: values of X must be at most {LARGEST_VALUE:g} in size unless normalize is on; "
            f"got {np.abs(X.data).max():g}"
        )


def as_i32(X: CSR, n_features: int) -> CSR:
    """The same rows with int32 indices and without the columns from ``n_features`` on."""
    if X.n_cols <= n_features and X.indices.dtype == np.int32:
        return X
    kept = X.indices < n_features
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(np.int64)
    return CSR(indptr, X.indices[kept].astype(np.int32), X.data[kept], n_features)


def _from_dicts(rows: Sequence[Mapping[int, float]], n_known: int, owner: str) -> CSR:
    indptr, columns, values = [0], [], []
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise LabelwoodError(f"{owner}: every row must be a dict; got {row!r} in row {position}")
        for feature in sorted(row):
            if (
                isinstance(feature, bool)
                or not isinstance(feature, int | np.integer)
                or not 0 <= feature <= MAX_FEATURE
            ):
                raise LabelwoodError(
                    f"{owner}: a feature id must be an integer from 0 to 2^63 - 1; got {feature!r} in row {position}"
                )
            columns.append(int(feature))
            values.append(row[feature])
        indptr.append(len(columns))
    try:
        data = np.array(values, np.float32)
    except (TypeError, ValueError):
        raise LabelwoodError(f"{owner}: feature values must be numbers") from None
    _check_finite(data, owner)
    widest = max(columns, default=-1) + 1
    dtype = np.int32 if widest <= MAX_COLUMNS else np.int64
    return CSR(np.array(indptr, np.int64), np.array(columns, dtype), data, max(n_known, widest, 1))


def _wide(X: Any, owner: str) -> CSR:
    matrix = X.tocsr().copy()
    matrix.sum_duplicates()
    data = np.ascontiguousarray(matrix.data, np.float32)
    _check_finite(data, owner)
    indices = np.ascontiguousarray(matrix.indices, np.int64)
    if len(indices) and indices.min() < 0:
        raise LabelwoodError(f"{owner}: a feature id must be at least 0; got {indices.min()}")
    return CSR(np.ascontiguousarray(matrix.indptr, np.int64), indices, data, int(matrix.shape[1]))  # type: ignore[arg-type]


def _check_finite(data: Any, owner: str) -> None:
    if not np.isfinite(data).all():
        raise LabelwoodError(f"{owner}: X must be finite; it contains NaN or infinity")
