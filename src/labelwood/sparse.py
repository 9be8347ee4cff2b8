"""The sparse matrix that is used throughout Labelwood.

Kernels rely on the invariants of :class:`CSR` and do not check them again: :meth:`CSR.check` and
:func:`labelwood.validation.features.as_features` do.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping
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
F64 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]
Arrays = Mapping[str, npt.NDArray[Any]]
Progress = Callable[[int], None] | None  # told the work done so far; None if nothing is shown

HEAVIEST = 1e30  # largest magnitude of a stored weight
_INFINITE_HALF = 0x7C00
_AT_ONCE = 1 << 20  # values
MAX_COLUMNS = 2**31 - 1
_UNORDERED = 3  # column ids out of order or repeated within a row: the one fault that from_scipy repairs


@dataclass(frozen=True)
class CSR:
    """A compressed sparse row matrix: ``indptr`` i64, ``indices`` i32, ``data`` f32, ``n_cols``.

    Invariants: ``indptr`` starts at 0, never decreases and ends at ``len(indices) == len(data)``; the indices of a row
    are strictly increasing and in ``[0, n_cols)``; the data are finite. The data of a label matrix are ones.
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
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, self.n_cols

    @property
    def ndim(self) -> int:
        """Two dimensions, as scipy's matrices have."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored values."""
        return self.data.dtype

    def __getitem__(self, key: Any) -> CSR:
        """Rows by a slice, a mask or an array of row numbers, so that scikit-learn can split the matrix.

        >>> from_lists([[0], [1], [0, 1]], n_cols=2)[[2, 0]].toarray().tolist()
        [[1.0, 1.0], [1.0, 0.0]]
        """
        if isinstance(key, tuple) and key[1:] in ((...,), (slice(None),)):
            key = key[0]
        if isinstance(key, tuple | str):
            raise LabelwoodError("CSR: an index must name rows; convert with to_scipy() to choose columns")
        return self.take(np.atleast_1d(np.arange(self.n_rows)[key]))

    @property
    def nbytes(self) -> int:
        """Bytes held by the three arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    def check(self) -> CSR:
        """Check every invariant and return self."""
        return self.refused(self.fault())

    def fault(self) -> int:
        """Return the number of the first violated invariant, 0 if there is none."""
        if any(array.ndim != 1 for array in (self.indptr, self.indices, self.data)):
            raise LabelwoodError("CSR: indptr, indices and data must be one-dimensional")
        if len(self.indptr) == 0 or len(self.data) != len(self.indices):
            raise LabelwoodError("CSR: indptr must not be empty; data and indices must have the same length")
        return _core.check_csr(self)

    def refused(self, fault: int) -> CSR:
        """Self, or an error that says which invariant does not hold."""
        if fault == 1:
            raise LabelwoodError("CSR: indptr must start at 0, never decrease and end at the number of entries")
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
        """Bytes of mapped pages that kernels may keep in memory; 0 for a matrix in memory."""
        return 0

    @property
    def dense_part(self) -> npt.NDArray[Any] | None:
        """Dense columns beside the sparse ones, as kernels read them; only a ``Hybrid`` has some."""
        return None

    @property
    def vector_factors(self) -> F32 | None:
        """Factors of the dense part; None: 1."""
        return None

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return 0

    def let_go(self) -> None:
        """Release the pages of a mapped matrix; a matrix in memory has none."""

    def to_scipy(self) -> sp.csr_array[np.float32]:
        """Return the matrix as a scipy array that shares the same memory."""
        import scipy.sparse as sp  # noqa: PLC0415 - importing labelwood must not import scipy

        return sp.csr_array((self.data, self.indices, self.indptr), shape=(self.n_rows, self.n_cols))

    def toarray(self) -> F32:
        """Return the matrix as a dense array."""
        dense: F32 = self.to_scipy().toarray()
        return dense

    def unit_rows(self) -> CSR:
        """The rows scaled to unit length; rows of zeros stay as they are."""
        return CSR(self.indptr, self.indices, _core.unit_rows(self.indptr, self.data), self.n_cols)

    def rows(self, start: int, stop: int) -> CSR:
        """Return rows ``start`` to ``stop``; indices and data are views."""
        first, last = self.indptr[start], self.indptr[stop]
        return CSR(self.indptr[start : stop + 1] - first, self.indices[first:last], self.data[first:last], self.n_cols)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> CSR:
        """Return a copy of the given rows, in the given order."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        source = np.repeat(self.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return CSR(indptr, self.indices[source], self.data[source], self.n_cols)


@dataclass(frozen=True)
class MappedCSR(CSR):
    """A matrix whose ``indices`` and ``data`` are mapped files; their pages are read when needed and released after.

    Mapped pages count as memory of the process. Kernels that read the rows in passes keep at most ``limit`` bytes of
    them. ``maps`` are the mappings.
    """

    maps: tuple[mmap.mmap, ...]
    limit: int = 2**25

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self.indptr.nbytes + self.limit

    @property
    def resident(self) -> int:
        """Bytes of mapped pages that kernels may keep in memory."""
        return self.limit

    def let_go(self) -> None:
        """Release all mapped pages."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows whose entries fit into ``limit``."""
        most, start = max(1, self.limit // 8), 0
        while start < self.n_rows:
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + most, side="right")) - 1
            stop = min(max(stop, start + 1), self.n_rows)
            yield start, stop
            start = stop

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> CSR:
        """Return a copy of the given rows in memory, in the given order."""
        wanted = np.ascontiguousarray(rows, np.int64)
        taken: tuple[I64, I32, F32] = _core.take_rows(self, wanted)
        return CSR(*taken, self.n_cols)

    def check(self) -> MappedCSR:
        """Check every invariant, window by window, and return self."""
        falls = len(self.indptr) == 0 or self.indptr[0] != 0 or not never_falls(self.indptr)
        if falls or self.indptr[-1] != len(self.indices) or len(self.data) != len(self.indices):
            raise LabelwoodError("CSR: indptr must start at 0, never decrease and end at the number of entries")
        for start, stop in self.windows():
            self.rows(start, stop).check()
            self.let_go()
        return self


class TopK(NamedTuple):
    """The k best labels of every row, best first: ``labels`` i32 and ``scores`` f32, both of shape [rows, k].

    A row with fewer labels is padded with label -1 and score 0. Equal scores are ordered by label id, so that a
    prediction depends only on the model and the row.
    """

    labels: I32
    scores: F32


def from_scipy(matrix: Any) -> CSR:
    """Convert a scipy matrix of any sparse format; duplicates are summed, explicit zeros are kept."""
    matrix = matrix.tocsr()
    if matrix.shape[1] > MAX_COLUMNS:
        raise LabelwoodError(f"X: at most {MAX_COLUMNS} columns are supported; got {matrix.shape[1]}")
    taken = _taken(matrix)
    if (fault := taken.fault()) == _UNORDERED:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        taken = _taken(matrix)
        fault = taken.fault()
    return taken.refused(fault)


def _taken(matrix: Any) -> CSR:
    return CSR(
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float32),
        int(matrix.shape[1]),
    )


def from_lists(rows: list[list[int]], n_cols: int) -> CSR:
    """Make a 0/1 matrix from one list of column ids per row; ids are sorted, repeated ids count once."""
    distinct = [sorted(set(row)) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in distinct])]).astype(np.int64)
    indices = np.fromiter((i for row in distinct for i in row), dtype=np.int32, count=int(indptr[-1]))
    return CSR(indptr, indices, np.ones(len(indices), np.float32), n_cols).check()


def label_matrix(indptr: I64, indices: I32, n_cols: int) -> CSR:
    """A 0/1 matrix whose ones take no memory."""
    return CSR(indptr, indices, np.broadcast_to(np.float32(1), len(indices)), n_cols)


def never_falls(pointer: npt.NDArray[Any]) -> bool:
    """True if the entries never decrease; compared, because the differences of forged entries may wrap around."""
    return bool((pointer[1:] >= pointer[:-1]).all())


def are_light(values: npt.NDArray[Any]) -> bool:
    """True if weights from a file are finite, and small enough that scores stay finite."""
    if values.dtype == np.float16:
        # NumPy is slow at comparing float16; the bits without the sign have the same order.
        bits = values.view(np.uint16)
        return all(
            int((bits[start : start + _AT_ONCE] & 0x7FFF).max(initial=0)) < _INFINITE_HALF
            for start in range(0, len(bits), _AT_ONCE)
        )
    lightest, heaviest = float(values.min(initial=0)), float(values.max(initial=0))
    return lightest >= -HEAVIEST and heaviest <= HEAVIEST  # false for NaN


def training_arrays(X: CSR, Y: CSR) -> dict[str, npt.NDArray[Any]]:
    """Features and labels, under the names that training kernels take them by."""
    return {
        "x_indptr": X.indptr, "x_indices": X.indices, "x_data": X.data, "y_indptr": Y.indptr, "y_indices": Y.indices,
    }  # fmt: skip
