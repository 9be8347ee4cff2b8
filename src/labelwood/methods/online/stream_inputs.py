"""Reading the rows and labels of a stream: new features and label names get ids in order of appearance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError, nearest
from labelwood.hybrid import as_sparse
from labelwood.label_names import LabelNames, name_problem
from labelwood.sparse import CSR, MAX_COLUMNS
from labelwood.validation.column_names import column_names, n_dimensions
from labelwood.validation.features import as_features
from labelwood.validation.targets import is_matrix, named_rows, read_matrix, read_rows
from labelwood.vocabulary.current_labels import CurrentLabels

_NOTHING = np.empty(0, np.int32)


class GrowingNames(LabelNames):
    """Label names that can be added and changed; ids never change.

    ``kind`` is ``ids`` while labels are columns of a matrix, else ``mixed``, whatever their types.
    """

    def __init__(self, start: LabelNames) -> None:
        mixed = [] if start.kind == "ids" else start.array.tolist()
        super().__init__("ids" if start.kind == "ids" else "mixed", len(start), mixed=mixed)
        self.vocabulary = start.vocabulary
        self._index: dict[Any, int] = {name: label for label, name in enumerate(mixed)}
        self._array: npt.NDArray[Any] | None = None

    @property
    def array(self) -> npt.NDArray[Any]:
        """All names, read-only."""
        if self._array is None or len(self._array) != self._count:
            self._array = self._frozen().array
        return self._array

    @property
    def index(self) -> dict[Any, int]:
        """Name to id."""
        if self.kind == "ids" and len(self._index) != self._count:
            self._index = {label: label for label in range(self._count)}
        return self._index

    def widen(self, count: int) -> None:
        """Make room for columns up to ``count``."""
        self._count = max(self._count, count)

    def add(self, names: Iterable[Hashable]) -> None:
        """Give the next ids to names that have none."""
        for name in names:
            if name not in self._index:
                self._index[name] = self._count
                self._mixed.append(name)
                self._count += 1

    def rename(self, old: Hashable, new: Hashable, *, owner: str) -> None:
        """Change a name; its id stays."""
        label = self.id_of(old, owner=owner)
        check_name(new, owner)
        if new in self.index:
            raise LabelwoodError(f"{owner}: the new name must be free; {new!r} is label {self.index[new]}")
        if self.kind == "ids":
            self._mixed, self.kind = list(range(self._count)), "mixed"
        del self._index[old]
        self._mixed[label], self._index[new], self._array = new, label, None

    def id_of(self, name: Hashable, *, owner: str) -> int:
        """The id of a name; raise if there is no such label."""
        try:
            return self.index[name]
        except (KeyError, TypeError):
            raise LabelwoodError(f"{owner}: there is no label {name!r}{nearest(name, self.index)}") from None

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What to save, as :class:`LabelNames` does."""
        return self._frozen().state()

    def _frozen(self) -> LabelNames:
        return LabelNames.columns(self._count) if self.kind == "ids" else LabelNames.of(self._mixed)


def check_name(name: Any, owner: str) -> None:
    """Refuse names that break the rule for names, look like a missing value, or cannot be looked up."""
    if name is None:
        raise LabelwoodError(f"{owner}: a label name must not be None, which stands for no label")
    try:
        hash(name)
    except TypeError as error:
        raise LabelwoodError(f"{owner}: a label name must be hashable; {error}") from None
    if name != name:  # noqa: PLR0124 - the test of NaN that asks nothing of the type
        raise LabelwoodError(f"{owner}: a label name must not be NaN")
    problem = name_problem(name)
    if problem is not None:
        raise LabelwoodError(f"{owner}: {problem}")


def read_targets(Y: Any, label_names: Sequence[Hashable] | None, names: GrowingNames, *, owner: str) -> CSR:
    """A user's Y with ids of ``names``, to which new labels are added; if Y is refused, nothing changes."""
    if not is_matrix(Y):
        if label_names is not None:
            raise LabelwoodError(f"{owner}: label_names must be left out when the rows of Y already hold names")
        return _from_rows(read_rows(Y, owner=owner), names, owner)
    matrix = read_matrix(Y, owner=owner)
    if label_names is None and not (names.kind == "ids" and len(names)):
        label_names = column_names(Y)
    if label_names is not None:
        if len(label_names) != matrix.n_cols:
            raise LabelwoodError(
                f"{owner}: label_names must be {matrix.n_cols} names, one for each column of Y; got {len(label_names)}"
            )
        return _from_rows(named_rows(matrix, label_names), names, owner)
    if names.kind == "ids":
        names.widen(matrix.n_cols)
    elif matrix.n_cols > len(names):
        raise LabelwoodError(
            f"{owner}: Y has {matrix.n_cols} columns, but the model knows {len(names)} labels by name; "
            "pass label_names, or Y as lists of names"
        )
    return CSR(matrix.indptr, matrix.indices, matrix.data, len(names))


def _from_rows(rows: Sequence[Sequence[Any]], names: GrowingNames, owner: str) -> CSR:
    known: Mapping[Any, int] = names.index
    for position, row in enumerate(rows):
        for name in row:
            try:
                new = name not in known
            except TypeError:
                new = True
            if new:
                check_name(name, f"{owner}: row {position}")
    if names.kind == "ids" and len(names) == 0:
        names.kind = "mixed"
    if names.vocabulary is not None and names.kind != "ids":
        current = CurrentLabels(names.vocabulary)
        rows = [[one for label in row if (one := current(label)) is not None] for row in rows]
    if names.kind == "ids":
        columns = {name for row in rows for name in row}
        wrong = next((name for name in columns if not isinstance(name, int | np.integer) or name < 0), None)
        if wrong is not None:
            raise LabelwoodError(f"{owner}: the labels of this model are numbers of columns; got {wrong!r}")
        names.widen(1 + max(columns, default=-1))
        known = names.index
    else:
        names.add(name.item() if isinstance(name, np.generic) else name for row in rows for name in row)
    ids = [sorted({known[name] for name in row}) for row in rows]
    indptr = np.zeros(len(ids) + 1, np.int64)
    np.cumsum([len(row) for row in ids], out=indptr[1:])
    flat = np.fromiter((label for row in ids for label in row), np.int32, count=int(indptr[-1]))
    return CSR(indptr, flat if len(flat) else _NOTHING, np.ones(len(flat), np.float32), len(names))


MAX_FEATURE = 2**63 - 1
LARGEST_VALUE = 1e15


def read_features(X: Any, n_known: int, *, owner: str) -> CSR:
    """A user's X. Indices are int64 if a feature id needs it, else int32.

    A matrix must have at least the ``n_known`` columns of earlier ones: fewer columns would mean other features.
    Duplicate entries are summed. A list of dicts maps feature ids (0 to 2^63 - 1) to values.
    """
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _from_dicts(X, n_known, owner)
    wide = not isinstance(X, CSR) and n_dimensions(X) == 2 and X.shape[1] > MAX_COLUMNS
    features = _wide(X, owner) if wide else as_sparse(as_features(X, owner=owner))
    if features.n_cols < n_known:
        raise LabelwoodError(
            f"{owner}: X has {features.n_cols} features, but {owner} is expecting {n_known} features as input; "
            "columns may be added, never taken away"
        )
    return features


def check_size(X: CSR, owner: str) -> None:
    """Refuse values whose squares could overflow float32 sums: one of them would spoil the model."""
    if X.nnz and np.abs(X.data).max() > LARGEST_VALUE:
        raise LabelwoodError(
            f"{owner}: values of X must be at most {LARGEST_VALUE:g} in size unless normalize is on; "
            f"got {np.abs(X.data).max():g}"
        )


def as_i32(X: CSR, n_features: int) -> CSR:
    """The same rows with int32 indices, without columns from ``n_features`` on."""
    if X.n_cols <= n_features and X.indices.dtype == np.int32:
        return X
    kept = X.indices < n_features
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(np.int64)
    return CSR(indptr, X.indices[kept].astype(np.int32), X.data[kept], n_features)


def _from_dicts(rows: Sequence[Mapping[Any, float]], n_known: int, owner: str) -> CSR:
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
