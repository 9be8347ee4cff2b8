"""The rows that a living model has learned, kept to train its batch model again: all, the last ones, or a sample.

Every row has a position, its number in the stream. Which rows are kept is a function of the positions and sizes of all
rows so far, never of the calls that brought them, so a replay keeps the same rows. The nearest of the last rows vote
for their labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F64, I32, I64, Arrays, TopK, label_matrix

JUDGED_EVERY = 8  # one row in so many is predicted before it is learned, and judges refits
_FIRST_ROOM = 64
_SLACK = 1.25  # rows are removed when the store holds this many times its bound
_MAX_VISITS = 20_000  # entries of other rows that a search for the nearest rows may look at
_WINDOW_STEPS = 4  # the window of the rows that vote moves on by this part of its length
_ROW_BYTES = 24  # of a row besides its entries: its position and two pointers
_GAMMA = 0x9E3779B97F4A7C15
_NAMES = ("positions", "x_indptr", "x_indices", "x_data", "y_indptr", "y_indices")


@dataclass(frozen=True)
class RowBounds:
    """Which rows a store keeps: the best by rank, at most ``max_rows`` rows and ``max_bytes`` bytes of them."""

    keep: Literal["window", "sample"] = "window"
    max_rows: int | None = None
    max_bytes: int | None = None
    half_life: int | None = None  # of a sample: a row this many rows older is kept half as often
    seed: int = 0

    @property
    def are_none(self) -> bool:
        """True if every row is kept."""
        return self.max_rows is None and self.max_bytes is None

    def ranks(self, positions: I64) -> F64:
        """The rank of rows, smallest first: the newest in a window, at random in a sample.

        The ranks of a sample are logarithms of exponential variates, whose rates double every ``half_life`` rows.
        """
        if self.keep == "window":
            return -positions.astype(np.float64)
        uniform = (_mixed(positions.astype(np.uint64), self.seed) >> np.uint64(11)).astype(np.float64) + 0.5
        ranks: F64 = np.log(-np.log(uniform * 2.0**-53))
        return ranks if self.half_life is None else ranks - positions * (np.log(2.0) / self.half_life)

    def kept(self, positions: I64, sizes: I64, cut: float) -> tuple[npt.NDArray[np.bool_], float]:
        """Which rows are kept, and the best rank of all rows that never will be; ``cut`` is that of earlier calls.

        The rows must be all rows but those that earlier calls did not keep.
        """
        ranks = self.ranks(positions)
        order = np.argsort(ranks, kind="stable")
        fits = ranks[order] < cut
        if self.max_rows is not None:
            fits[self.max_rows :] = False
        if self.max_bytes is not None:
            fits &= np.cumsum(sizes[order]) <= self.max_bytes
        lost = order[~fits]
        chosen = np.ones(len(order), bool)
        chosen[lost] = False
        return chosen, min(cut, float(ranks[lost].min(initial=np.inf)))


@dataclass(frozen=True)
class Rows:
    """Some rows with their positions and label ids, in the order of the stream."""

    positions: I64
    X: CSR
    Y: CSR

    def take(self, wanted: npt.NDArray[Any]) -> Rows:
        """A copy of some rows."""
        return Rows(self.positions[wanted], self.X.take(wanted), self.Y.take(wanted))

    @property
    def sizes(self) -> I64:
        """Bytes of each row."""
        sizes: I64 = 8 * np.diff(self.X.indptr) + 4 * np.diff(self.Y.indptr) + _ROW_BYTES
        return sizes


class RowStore:
    """Rows in two parts: those of a model directory, mapped, and those that came since, in memory.

    ``seen`` counts all rows of the stream. Recent rows are one row in eight of the last ``8 * n_recent`` rows: those
    that judge refits. They are kept whatever the bounds. Call :meth:`trim` at positions that do not depend on the
    batches in which rows come.
    """

    def __init__(self, bounds: RowBounds, base: Rows | None = None, seen: int = 0) -> None:
        self._bounds, self.seen = bounds, seen
        self._base = base or _no_rows()
        self._new = _Growing()
        self._cut = np.inf  # the best rank of all rows that were removed

    @property
    def n_rows(self) -> int:
        """Number of rows in the store; a few more than the bounds allow until they are removed."""
        return len(self._base.positions) + self._new.n_rows

    def append(self, X: CSR, Y: CSR) -> None:
        """Add the next rows of the stream."""
        self._new.append(np.arange(self.seen, self.seen + X.n_rows), X, Y)
        self.seen += X.n_rows

    def trim(self, *, n_recent: int) -> bool:
        """Remove the rows that the bounds do not keep, except for the recent ones; true if there were any."""
        if self._bounds.are_none:
            return False
        positions, older, sizes = self._older(n_recent)
        kept, self._cut = self._bounds.kept(positions[older], sizes[older], self._cut)
        chosen = np.ones(len(positions), bool)
        chosen[older] = kept
        if chosen.all():
            return False
        self._base, self._new = self._all(np.flatnonzero(chosen)), _Growing()
        return True

    def is_too_large(self, n_recent: int) -> bool:
        """True if the store holds many more rows than the bounds keep."""
        bounds = self._bounds
        if bounds.are_none:
            return False
        _, older, sizes = self._older(n_recent)
        if bounds.max_rows is not None and len(older) > _SLACK * bounds.max_rows + _FIRST_ROOM:
            return True
        return bounds.max_bytes is not None and int(sizes[older].sum()) > _SLACK * bounds.max_bytes

    def training(self, until: int, n_recent: int, n_features: int, n_labels: int) -> Rows:
        """The rows before position ``until`` except for those that were recent there."""
        rows = self._all()
        wanted = (rows.positions < until) & ~is_recent(rows.positions, until, n_recent)
        return _wide(rows.take(np.flatnonzero(wanted)), n_features, n_labels)

    def recent(self, n_recent: int, n_features: int, n_labels: int) -> Rows:
        """The recent rows."""
        positions = np.concatenate([self._base.positions, self._new.positions])
        wanted = np.flatnonzero(is_recent(positions, self.seen, n_recent))
        return _wide(self._all(wanted), n_features, n_labels)

    def since(self, position: int, n_features: int, n_labels: int) -> Rows:
        """The rows from a position on."""
        positions = np.concatenate([self._base.positions, self._new.positions])
        first = int(np.searchsorted(positions, position))
        return _wide(self._all(np.arange(first, len(positions))), n_features, n_labels)

    def after(self, position: int) -> RowStore:
        """A store of the rows from a position on."""
        return RowStore(self._bounds, self.since(position, 0, 0), self.seen)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The rows as arrays."""
        rows = self._all()
        parts = (rows.positions, rows.X.indptr, rows.X.indices, rows.X.data, rows.Y.indptr, rows.Y.indices)
        return {**dict(zip(_NAMES, parts, strict=True)), "cut": np.array([self._cut])}

    @classmethod
    def restore(cls, bounds: RowBounds, arrays: Arrays, seen: int, n_features: int, n_labels: int) -> RowStore:
        """The inverse of :meth:`arrays`; checks every invariant."""
        positions, x_indptr, x_indices, x_data, y_indptr, y_indices = (arrays[name] for name in _NAMES)
        types = (np.int64, np.int64, np.int32, np.float32, np.int64, np.int32)
        given = (positions, x_indptr, x_indices, x_data, y_indptr, y_indices)
        if any(array.dtype != kind or array.ndim != 1 for array, kind in zip(given, types, strict=True)):
            raise FormatError("the rows of the store have the wrong types")
        Y = CSR(y_indptr, y_indices, np.ones(len(y_indices), np.float32), n_labels).check()
        rows = Rows(positions, CSR(x_indptr, x_indices, x_data, n_features).check(), Y)
        rises = len(positions) == 0 or bool((np.diff(positions) > 0).all() and positions[0] >= 0)
        if not rises or len(positions) != rows.X.n_rows or len(positions) != Y.n_rows:
            raise FormatError("the positions of the rows must rise, one for each row")
        if len(positions) and positions[-1] >= seen:
            raise FormatError("the store has rows that were not seen")
        if arrays["cut"].shape != (1,) or arrays["cut"].dtype != np.float64 or np.isnan(arrays["cut"][0]):
            raise FormatError("the cut of the store must be a number")
        labels = label_matrix(y_indptr, y_indices, n_labels)
        store = cls(bounds, Rows(positions, rows.X, labels), seen)
        store._cut = float(arrays["cut"][0])
        return store

    def _older(self, n_recent: int) -> tuple[I64, npt.NDArray[np.intp], I64]:
        """The positions of all rows, which of them are not recent, and their sizes."""
        positions = np.concatenate([self._base.positions, self._new.positions])
        sizes = np.concatenate([self._base.sizes, self._new.rows().sizes])
        return positions, np.flatnonzero(~is_recent(positions, self.seen, n_recent)), sizes

    def _all(self, wanted: npt.NDArray[Any] | None = None) -> Rows:
        """All rows, or the wanted ones, together; those of a file are copied only if others join them."""
        new, n_base = self._new.rows(), len(self._base.positions)
        if wanted is None:
            return self._base if new.X.n_rows == 0 else _joined([self._base, new])
        parts = [self._base.take(wanted[wanted < n_base]), new.take(wanted[wanted >= n_base] - n_base)]
        return _joined(parts)


def is_recent(positions: I64, seen: int, n_recent: int) -> npt.NDArray[np.bool_]:
    """Which of the rows are recent when ``seen`` rows have come."""
    recent: npt.NDArray[np.bool_] = (positions % JUDGED_EVERY == 0) & (positions >= seen - JUDGED_EVERY * n_recent)
    return recent


def count_recent(seen: int, n_recent: int) -> int:
    """The number of recent rows when ``seen`` rows have come."""
    first = max(0, seen - JUDGED_EVERY * n_recent)
    return -(-seen // JUDGED_EVERY) - -(-first // JUDGED_EVERY)


class NearestRows:
    """The rows of a store from position ``start`` on, whose nearest vote for their labels, each as soon as it is added.

    The same rows in the same order give the same answers.
    """

    def __init__(self, n_neighbors: int, start: int) -> None:
        self._index = _core.NearestRows(n_neighbors, _MAX_VISITS)
        self.start = start

    def add(self, X: CSR, Y: CSR) -> None:
        """Add rows."""
        self._index.add(X, Y)

    def search(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels with the most votes, and their shares of the votes."""
        with run.phase("nearest rows", X.n_rows) as progress:
            return TopK(*self._index.search(X, k, run.n_threads, progress))

    def search_then_add(self, X: CSR, Y: CSR, k: int) -> TopK:
        """Search with each row, then add it."""
        return TopK(*self._index.search_then_add(X, Y, k))


def window_start(seen: int, n_rows: int, step: int) -> int:
    """The first position of the rows that vote: about the last ``n_rows``; it moves on by multiples of ``step``."""
    stride = max(step, n_rows // _WINDOW_STEPS // step * step)
    return max(0, seen // stride * stride - n_rows)


class _Growing:
    """Rows in arrays with room for more."""

    def __init__(self) -> None:
        self.n_rows = self.n_entries = self._n_marks = 0
        self._positions, self._ends = np.empty(0, np.int64), np.empty((0, 2), np.int64)
        self._indices, self._data, self._labels = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.int32)

    @property
    def positions(self) -> I64:
        return self._positions[: self.n_rows]

    def append(self, positions: I64, X: CSR, Y: CSR) -> None:
        """Add rows."""
        first, entries, marks = self.n_rows, self.n_entries, self._n_marks
        ends = np.stack([X.indptr[1:] + entries, Y.indptr[1:] + marks], axis=1)
        self.n_rows, self.n_entries, self._n_marks = first + X.n_rows, entries + X.nnz, marks + Y.nnz
        self._positions = _put(self._positions, first, positions)
        self._ends = _put(self._ends, first, ends)
        self._indices, self._data = _put(self._indices, entries, X.indices), _put(self._data, entries, X.data)
        self._labels = _put(self._labels, marks, Y.indices)

    def rows(self) -> Rows:
        """The rows so far; later rows do not change them."""
        ends = np.concatenate([np.zeros((1, 2), np.int64), self._ends[: self.n_rows]])
        indices, data = self._indices[: self.n_entries], self._data[: self.n_entries]
        X = CSR(np.ascontiguousarray(ends[:, 0]), indices, data, 0)
        Y = label_matrix(np.ascontiguousarray(ends[:, 1]), self._labels[: self._n_marks], 0)
        return Rows(self.positions, X, Y)


def _put(array: npt.NDArray[Any], start: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put values behind the first ``start`` entries; the array, or a larger copy of it."""
    stop = start + len(values)
    if stop > len(array):
        larger = np.empty((max(stop, 2 * len(array), _FIRST_ROOM), *array.shape[1:]), array.dtype)
        larger[:start] = array[:start]
        array = larger
    array[start:stop] = values
    return array


def _joined(parts: Sequence[Rows]) -> Rows:
    positions = np.concatenate([rows.positions for rows in parts])
    return Rows(positions, _stacked([rows.X for rows in parts]), _stacked([rows.Y for rows in parts]))


def _stacked(parts: Sequence[CSR]) -> CSR:
    starts = np.cumsum([0, *(part.nnz for part in parts)])
    indptr = np.concatenate([[0], *(part.indptr[1:] + start for part, start in zip(parts, starts[:-1], strict=True))])
    indices: I32 = np.concatenate([part.indices for part in parts])
    data = np.concatenate([part.data for part in parts])
    return CSR(indptr.astype(np.int64), indices, data, 0)


def _wide(rows: Rows, n_features: int, n_labels: int) -> Rows:
    X, Y = rows.X, rows.Y
    return Rows(
        rows.positions, CSR(X.indptr, X.indices, X.data, n_features), label_matrix(Y.indptr, Y.indices, n_labels)
    )


def _no_rows() -> Rows:
    nothing, start = np.empty(0, np.int32), np.zeros(1, np.int64)
    empty = CSR(start, nothing, np.empty(0, np.float32), 0)
    return Rows(np.empty(0, np.int64), empty, empty)


def _mixed(numbers: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """The numbers, mixed by splitmix64."""
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(1)) * np.uint64(_GAMMA) + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
