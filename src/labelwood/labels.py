"""Label names of any hashable kind, and the ids 0..L-1 that the rest of the library works with.

A :class:`LabelNames` is compact and lazy: integers are one i64 array, strings one block of UTF-8 and its
offsets, decoded only when asked for, so that a model with a million names loads at once. Everything else
(tuples, floats, None, mixed kinds) is kept as it is and saved as typed JSON.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import strings
from labelwood.errors import FormatError, LabelwoodError
from labelwood.frames import n_dimensions
from labelwood.sparse import CSR, I64, MAX_COLUMNS, from_scipy

PREFIX = "label_names."
UTF8, OFFSETS, INTEGERS = PREFIX + "utf8", PREFIX + "offsets", PREFIX + "integers"

Objects = npt.NDArray[np.object_]

_FEW = 64  # names that are quicker decoded one by one than after finding the distinct ones


class LabelNames:
    """The names of labels 0..L-1, all distinct.

    ``kind`` says how they are kept: ``ids`` (Y was a matrix, a label is its column), ``int``, ``str`` or
    ``mixed``.
    """

    def __init__(
        self, kind: str, count: int, *, arrays: Mapping[str, Any] | None = None, mixed: Sequence[Any] = ()
    ):
        self.kind, self._count = kind, count
        self._arrays = dict(arrays or {})
        self._mixed = list(mixed)

    @classmethod
    def columns(cls, count: int) -> LabelNames:
        """The labels of a matrix: each is named by its column."""
        return cls("ids", count)

    @classmethod
    def of(cls, names: Iterable[Hashable]) -> LabelNames:
        """The given distinct names, in the given order."""
        plain: list[Any] = [name.item() if isinstance(name, np.generic) else name for name in names]
        kinds = set(map(type, plain))
        if kinds == {int} and all(-(2**63) <= name < 2**63 for name in plain):
            return cls("int", len(plain), arrays={INTEGERS: np.array(plain, np.int64)})
        if kinds == {str}:
            utf8, offsets = strings.pack(plain)
            return cls("str", len(plain), arrays={UTF8: utf8, OFFSETS: offsets})
        return cls("mixed", len(plain), mixed=plain)

    def __len__(self) -> int:
        return self._count

    def named(self, ids: Sequence[int]) -> list[Any]:
        """The names of a few ids; labels that have no names stay ids."""
        return self._of_ids(np.array(ids, np.int64))

    def _of_ids(self, ids: npt.NDArray[np.integer[Any]]) -> list[Any]:
        if self.kind in ("ids", "int"):
            numbers: list[Any] = (ids if self.kind == "ids" else self._arrays[INTEGERS][ids]).tolist()
            return numbers
        if self.kind == "mixed":
            return [self._mixed[label] for label in ids.tolist()]
        return strings.unpack(self._arrays[UTF8], self._arrays[OFFSETS], ids, what="a label name")

    @cached_property
    def array(self) -> npt.NDArray[Any]:
        """All names, read-only: an integer array, or an object array for any other kind."""
        if self.kind == "ids":
            names: npt.NDArray[Any] = np.arange(self._count)
        elif self.kind == "int":
            names = self._arrays[INTEGERS].view()
        else:
            names = _objects(self._of_ids(np.arange(self._count)))
        names.flags.writeable = False
        return names

    def take(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """The names of an array of ids, in its shape; -1 becomes None. Labels that have no names stay ids."""
        if self.kind == "ids":
            return ids
        if ids.size <= _FEW:
            flat = ids.ravel()
            names = iter(self._of_ids(flat[flat >= 0]))
            few = [next(names) if label >= 0 else None for label in flat.tolist()]
            return _objects(few).reshape(ids.shape)
        distinct, where = np.unique(ids, return_inverse=True)
        known = distinct[distinct >= 0]
        named = _objects([None] * (len(distinct) - len(known)) + self._of_ids(known))
        return named[where].reshape(ids.shape)

    @cached_property
    def index(self) -> dict[Any, int]:
        """Name to id."""
        return {name: label for label, name in enumerate(self.array.tolist())}

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What to save: facts for the manifest, and arrays."""
        facts: dict[str, Any] = {"kind": self.kind, "count": self._count}
        if self.kind == "mixed":
            facts["names"] = [_to_json(name) for name in self._mixed]
        return facts, dict(self._arrays)

    @classmethod
    def restore(cls, facts: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> LabelNames:
        """The inverse of :meth:`state`."""
        try:
            kind, count = facts["kind"], facts["count"]
            mixed = [_from_json(name) for name in facts["names"]] if kind == "mixed" else []
            kept = {"ids": (), "mixed": (), "int": (INTEGERS,), "str": (UTF8, OFFSETS)}[kind]
            names = cls(kind, count, arrays={name: arrays[name] for name in kept}, mixed=mixed)
            sound = type(count) is int and 0 <= count <= MAX_COLUMNS and names._is_sound()
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the label names cannot be read ({error!r})") from None
        if not sound:
            raise FormatError("the label names are damaged; their number or their offsets do not agree")
        return names

    def _is_sound(self) -> bool:
        if self.kind == "int":
            integers = self._arrays[INTEGERS]
            return bool(integers.dtype == np.int64 and integers.shape == (self._count,))
        if self.kind == "str":
            return strings.are_sound(self._arrays[UTF8], self._arrays[OFFSETS], self._count)
        return self.kind == "ids" or len(self._mixed) == self._count


def _objects(values: list[Any]) -> Objects:
    # np.array would turn a list of tuples into a matrix
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def _to_json(name: Any) -> Any:
    """A name as JSON that keeps its type: plain where JSON has the type, else ``{"type": value}``."""
    if name is None or type(name) in (str, int, bool):
        return name
    if type(name) is float:
        return {"float": name.hex()}
    if type(name) is bytes:
        return {"bytes": name.hex()}
    if type(name) is tuple:
        return {"tuple": [_to_json(part) for part in name]}
    if type(name) is frozenset:
        return {"frozenset": sorted((_to_json(part) for part in name), key=repr)}
    raise LabelwoodError(
        "save: a label name must be a string, integer, float, bool, None, bytes, or a tuple or frozenset of "
        f"these; got {name!r} of type {type(name).__name__}. Rename the labels before fitting, as with str."
    )


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        if isinstance(value, list | float):
            raise ValueError(f"{value!r} is not a label name")
        return value
    ((kind, inner),) = value.items()
    if kind == "float":
        return float.fromhex(inner)
    if kind == "bytes":
        return bytes.fromhex(inner)
    return {"tuple": tuple, "frozenset": frozenset}[kind](_from_json(part) for part in inner)


def is_matrix(Y: Any) -> bool:
    """Whether Y is an indicator matrix (CSR, scipy sparse, 2-d array or table) and not rows of names."""
    import scipy.sparse as sp  # noqa: PLC0415 - keeps scipy out of the import of the package

    return isinstance(Y, CSR) or bool(sp.issparse(Y)) or n_dimensions(Y) == 2


def read_matrix(Y: Any, *, owner: str) -> CSR:
    """An indicator matrix as a CSR of ones; anything but 0 and 1 is refused."""
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
        raise LabelwoodError(
            f"{owner}: a Y matrix must hold 0 and 1; got {wrong:g}. Use (Y != 0) if any value counts."
        )
    if not values.all():
        kept = matrix.to_scipy().copy()
        kept.eliminate_zeros()
        matrix = from_scipy(kept)
    return matrix


def read_rows(Y: Any, *, owner: str) -> list[list[Hashable]]:
    """Rows of label names as lists; a row that is no collection of names is refused with advice.

    The values of a one-dimensional array or column are labels, one a row: the target of a classifier.
    """
    if Y is None:
        raise LabelwoodError(f"{owner}: requires y to be passed, but the target y is None")
    if isinstance(Y, str | bytes) or not isinstance(Y, Iterable):
        raise LabelwoodError(
            f"{owner}: Y must be a 0/1 matrix or one list of label names a row; got {type(Y).__name__}"
        )
    if n_dimensions(Y) == 1:
        values = np.asarray(Y).tolist()
        if all(isinstance(value, str | int | float) for value in values):
            return [[value] for value in values]
    return [_read_row(row, position, owner) for position, row in enumerate(Y)]


def named_rows(matrix: CSR, names: Sequence[Hashable]) -> list[list[Hashable]]:
    """The rows of an indicator matrix as lists of the names of their columns."""
    bounds, ids = matrix.indptr.tolist(), matrix.indices.tolist()
    return [[names[i] for i in ids[bounds[row] : bounds[row + 1]]] for row in range(matrix.n_rows)]


def _read_row(row: Any, position: int, owner: str) -> list[Hashable]:
    if type(row) in (list, tuple):
        return row  # type: ignore[no-any-return]  # what it holds is looked at when names get their ids
    if isinstance(row, set | frozenset):
        # A set of strings iterates in another order in every process; nothing may depend on that.
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
        raise LabelwoodError(
            f"{owner}: a label name must be hashable, such as a string or a tuple; {error}"
        ) from None
    if any(isinstance(name, float | np.floating) and math.isnan(name) for name in seen):
        raise LabelwoodError(f"{owner}: a label name must not be NaN; Y contains missing values")
    try:
        return sorted(seen)  # type: ignore[type-var]  # whether names compare shows in trying
    except TypeError:
        return seen


def to_csr(rows: list[list[Hashable]], index: Mapping[Any, int], n_cols: int, *, owner: str) -> CSR:
    """Rows of names as a CSR of ones; names that ``index`` lacks become further columns as they appear."""
    import scipy.sparse as sp  # noqa: PLC0415 - as above

    indptr: I64 = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(
        np.int64
    )
    unseen: dict[Any, int] = {}
    width = max(n_cols, len(index))
    try:
        ids = [
            index[name] if name in index else unseen.setdefault(name, width + len(unseen))
            for name in chain.from_iterable(rows)
        ]
    except TypeError as error:
        raise LabelwoodError(
            f"{owner}: a label name must be hashable, such as a string or a tuple; {error}"
        ) from None
    shape = (len(rows), width + len(unseen))
    matrix = from_scipy(
        sp.csr_array((np.ones(len(ids), np.float32), np.array(ids, np.int32), indptr), shape=shape)
    )
    return CSR(matrix.indptr, matrix.indices, np.ones_like(matrix.data), matrix.n_cols)
