"""The one sparse matrix that travels inside Labelwood, and the door through which user data becomes it.

Everything past :func:`as_features` and :class:`CSR.check` may rely on the invariants stated there: kernels index
without looking.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import LabelwoodError

if TYPE_CHECKING:
    import scipy.sparse as sp

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
F32 = npt.NDArray[np.float32]

HEAVIEST = 1e30
_INFINITE_HALF = 0x7C00
MAX_COLUMNS = 2**31 - 1
_UNORDERED = 3  # the fault that can be mended: column ids out of order, or twice in a row


@dataclass(frozen=True)
class CSR:
    """A compressed sparse row matrix: ``indptr`` i64, ``indices`` i32, ``data`` f32, ``n_cols``.

    Invariants: ``indptr[0] == 0``, ``indptr`` never falls and ends at ``len(indices) == len(data)``; the indices of
    a row are strictly increasing and in ``[0, n_cols)``; the data are finite. A label matrix has data of ones.
    """

    indptr: I64
    indices: I32
    data: F32
    n_cols: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Bytes held by the three arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    def check(self) -> CSR:
        """Assert every invariant; return self, so that ``CSR(...).check()`` reads as a value."""
        return self._refused(self._fault())

    def _fault(self) -> int:
        """The number of the first invariant that does not hold; 0 if all do."""
        if any(array.ndim != 1 for array in (self.indptr, self.indices, self.data)):
            raise LabelwoodError("CSR: indptr, indices and data must be one-dimensional")
        if len(self.indptr) == 0 or len(self.data) != len(self.indices):
            raise LabelwoodError("CSR: indptr must not be empty; data and indices must have the same length")
        return _core.check_csr(self)

    def _refused(self, fault: int) -> CSR:
        if fault == 1:
            raise LabelwoodError("CSR: indptr must start at 0, never fall and end at the number of entries")
        if fault == 2:
            raise LabelwoodError(
                f"CSR: column ids must be in [0, {self.n_cols}); got {self.indices.min()}..{self.indices.max()}"
            )
        if fault == _UNORDERED:
            raise LabelwoodError("CSR: the column ids of a row must be sorted and distinct")
        if fault == 4:
            raise LabelwoodError("CSR: values must be finite; got NaN or infinity")
        return self

    @property
    def resident(self) -> int:
        """Bytes of a file's pages that kernels may keep in memory; 0 for a matrix that is in memory."""
        return 0

    def let_go(self) -> None:
        """Give back the memory of pages, if the rows are in a file."""

    def to_scipy(self) -> sp.csr_array[np.float32]:
        """The same matrix for scipy; the arrays are shared, not copied."""
        import scipy.sparse as sp  # noqa: PLC0415 - keeps scipy out of the import of the package

        return sp.csr_array((self.data, self.indices, self.indptr), shape=(self.n_rows, self.n_cols))

    def unit_rows(self) -> CSR:
        """The rows scaled to unit length; rows of zeros stay as they are."""
        return CSR(self.indptr, self.indices, _core.unit_rows(self.indptr, self.data), self.n_cols)

    def rows(self, start: int, stop: int) -> CSR:
        """Rows ``start`` to ``stop``; indices and data are views."""
        first, last = self.indptr[start], self.indptr[stop]
        return CSR(
            self.indptr[start : stop + 1] - first,
            self.indices[first:last],
            self.data[first:last],
            self.n_cols,
        )

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> CSR:
        """The given rows, in the given order, copied."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        source = np.repeat(self.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return CSR(indptr, self.indices[source], self.data[source], self.n_cols)


@dataclass(frozen=True)
class MappedCSR(CSR):
    """A matrix whose ``indices`` and ``data`` are mapped files, read when they are used and then let go of.

    Pages of a file that is mapped count as memory of the process. ``limit`` is how many bytes of them kernels that
    read rows in passes keep; ``maps`` are the mappings.
    """

    maps: tuple[mmap.mmap, ...]
    limit: int = 2**25

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self.indptr.nbytes + self.limit

    @property
    def resident(self) -> int:
        """Bytes of the files' pages that kernels may keep in memory."""
        return self.limit

    def let_go(self) -> None:
        """Give back the memory of all pages."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows, each of about as many entries as may be kept."""
        most, start = max(1, self.limit // 8), 0
        while start < self.n_rows:
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + most, side="right")) - 1
            stop = min(max(stop, start + 1), self.n_rows)
            yield start, stop
            start = stop

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> CSR:
        """The given rows, in the given order, copied into memory."""
        wanted = np.ascontiguousarray(rows, np.int64)
        taken: tuple[I64, I32, F32] = _core.take_rows(self, wanted)
        return CSR(*taken, self.n_cols)

    def check(self) -> MappedCSR:
        """Assert every invariant, window by window; return self."""
        falls = len(self.indptr) == 0 or self.indptr[0] != 0 or not never_falls(self.indptr)
        if falls or self.indptr[-1] != len(self.indices) or len(self.data) != len(self.indices):
            raise LabelwoodError("CSR: indptr must start at 0, never fall and end at the number of entries")
        for start, stop in self.windows():
            self.rows(start, stop).check()
            self.let_go()
        return self


class TopK(NamedTuple):
    """Predictions: ``labels`` i32 and ``scores`` f32, both [rows, k], best first; short rows end in -1 and 0.

    Equal scores are ordered by label id, so a prediction is a function of the model and the row alone.
    """

    labels: I32
    scores: F32


def from_scipy(matrix: Any) -> CSR:
    """A scipy matrix of any sparse format as a checked CSR; duplicates are summed, explicit zeros kept."""
    matrix = matrix.tocsr()
    if matrix.shape[1] > MAX_COLUMNS:
        raise LabelwoodError(f"X: at most {MAX_COLUMNS} columns are supported; got {matrix.shape[1]}")
    taken = _taken(matrix)
    if (fault := taken._fault()) == _UNORDERED:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        taken = _taken(matrix)
        fault = taken._fault()
    return taken._refused(fault)


def _taken(matrix: Any) -> CSR:
    return CSR(
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float32),
        int(matrix.shape[1]),
    )


def from_lists(rows: list[list[int]], n_cols: int) -> CSR:
    """A 0/1 matrix from lists of column ids, one list a row; ids are sorted and made distinct."""
    distinct = [sorted(set(row)) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in distinct])]).astype(np.int64)
    indices = np.fromiter((i for row in distinct for i in row), dtype=np.int32, count=int(indptr[-1]))
    return CSR(indptr, indices, np.ones(len(indices), np.float32), n_cols).check()


def label_matrix(indptr: I64, indices: I32, n_cols: int) -> CSR:
    """A 0/1 matrix whose ones take no memory."""
    return CSR(indptr, indices, np.broadcast_to(np.float32(1), len(indices)), n_cols)


def as_features(X: Any, *, owner: str, n_features: int | None = None) -> CSR:
    """What the user calls X as a checked CSR.

    Takes a CSR, any scipy sparse matrix, or a dense two-dimensional array (zeros are dropped). ``owner`` opens the
    error messages; ``n_features`` is the number of columns the model was trained with.
    """
    import scipy.sparse as sp  # noqa: PLC0415 - keeps scipy out of the import of the package

    if isinstance(X, CSR):
        matrix = X.check()
    else:
        given: Any = X if sp.issparse(X) else np.asarray(X)
        if given.ndim != 2:
            raise LabelwoodError(
                f"{owner}: X must be two-dimensional (rows x features); got {given.ndim}-d input. "
                "Reshape your data: a single row goes in as X.reshape(1, -1)."
            )
        matrix = _from_sparse(given, owner) if sp.issparse(X) else _from_dense(given, owner)
    if n_features is not None and matrix.n_cols != n_features:
        raise LabelwoodError(
            f"{owner}: X has {matrix.n_cols} features, but {owner} is expecting {n_features} features as input"
        )
    return matrix


def _from_sparse(matrix: Any, owner: str) -> CSR:
    _refuse_complex(matrix, owner)
    if matrix.dtype.kind not in "biuf":
        raise LabelwoodError(f"{owner}: X must hold real numbers; got dtype {matrix.dtype}")
    return from_scipy(matrix)


def _from_dense(dense: npt.NDArray[Any], owner: str) -> CSR:
    import scipy.sparse as sp  # noqa: PLC0415 - as above

    _refuse_complex(dense, owner)
    if dense.dtype.kind not in "biuf":
        try:
            dense = np.asarray(dense.tolist(), np.float32)
        except (TypeError, ValueError):
            raise LabelwoodError(f"{owner}: X must hold real numbers; got dtype {dense.dtype}") from None
    if not np.isfinite(dense).all():
        raise LabelwoodError(f"{owner}: X must be finite; it contains NaN or infinity")
    return from_scipy(sp.csr_array(dense.astype(np.float32)))


def _refuse_complex(values: Any, owner: str) -> None:
    if values.dtype.kind == "c":
        raise LabelwoodError(f"{owner}: X must hold real numbers. Complex data not supported")


def never_falls(pointer: npt.NDArray[Any]) -> bool:
    """Whether no entry is below the one before. Differences would not tell: those of forged entries wrap around."""
    return bool((pointer[1:] >= pointer[:-1]).all())


def are_light(values: npt.NDArray[Any]) -> bool:
    """Whether weights from a file are finite, and so light that sums of their products with rows stay finite."""
    if (
        values.dtype == np.float16
    ):  # NumPy compares halves slowly; of their bits those without sign tell as much
        return int((values.view(np.uint16) & 0x7FFF).max(initial=0)) < _INFINITE_HALF
    lightest, heaviest = float(values.min(initial=0)), float(values.max(initial=0))
    return lightest >= -HEAVIEST and heaviest <= HEAVIEST  # NaN is neither
