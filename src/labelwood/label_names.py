"""Label names of any hashable kind, and the ids 0..L-1 that the rest of the library works with.

A :class:`LabelNames` is compact: integers are one i64 array, strings one block of UTF-8 with offsets, decoded on first
use, so that a model with a million names loads at once. All other names (tuples, floats, None, mixed kinds) are kept as
objects and saved as typed JSON.

A name that is a string has 1 to 1,000 characters. Control characters except the tab, line separators and lone
surrogates are refused, because they cannot be written to a file of names, encoded as UTF-8 or shown safely. All else is
kept as it is: real vocabularies contain tabs, and Unicode is not normalized, so that a name comes back as it was given.
:func:`name_problem` is this rule, and every door applies it: files, ``fit``, ``partial_fit``, renames and the service.
Models and logs of earlier versions may break the rule; their names are escaped by :func:`readable`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import MAX_COLUMNS
from labelwood.storage import packed_strings

if TYPE_CHECKING:
    from labelwood.vocabulary import Vocabulary

PREFIX = "label_names."
UTF8, OFFSETS, INTEGERS = PREFIX + "utf8", PREFIX + "offsets", PREFIX + "integers"

Objects = npt.NDArray[np.object_]

MAX_NAME = 1000  # characters of a name
_REFUSED = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BYTES_AT_ONCE = 1 << 20

_FEW = 64  # up to this many names are decoded one by one, without looking for repeats


def name_problem(name: Any) -> str | None:
    """What the rule for label names refuses in a name, as the rest of a sentence; None if the name is good.

    Only strings are judged, also those within a tuple or a frozenset.

    >>> name_problem("tax law"), name_problem("")
    (None, 'a label name must have 1 to 1000 characters; got 0')
    """
    if isinstance(name, str):
        if not 0 < len(name) <= MAX_NAME:
            return f"a label name must have 1 to {MAX_NAME} characters; got {len(name)}"
        if not name.isprintable() and _REFUSED.search(name):
            shown = ascii(name) if len(name) <= 60 else ascii(name[:60]) + "..."
            return f"a label name must not contain control characters, line breaks or lone surrogates; got {shown}"
    elif isinstance(name, tuple | frozenset):
        return next((problem for part in name if (problem := name_problem(part)) is not None), None)
    return None


def readable(name: Any) -> Any:
    """A name of an earlier version with the characters that are refused now escaped; good names stay as they are.

    >>> readable("a\\x00b"), readable("tax law")
    ('a\\\\x00b', 'tax law')
    """
    if isinstance(name, str):
        return name if name.isprintable() else _REFUSED.sub(lambda found: ascii(found[0])[1:-1], name)
    if type(name) in (tuple, frozenset):
        return type(name)(map(readable, name))
    return name


class LabelEntry(NamedTuple):
    """What a model knows of one label.

    ``support`` is the number of examples seen with it. A model that learns from a stream also knows its ``age``, the
    number of examples since the first of them, and ``idle``, the number since the last. ``state`` is ``active``,
    ``retired``, ``merged`` (into ``target``) or ``unseen``.
    """

    name: Any
    id: int
    state: str
    support: int
    age: int | None = None
    idle: int | None = None
    target: Any = None


class LabelNames:
    """The names of labels 0..L-1, all distinct.

    ``kind`` says how they are stored: ``ids`` (Y was a matrix, a label is its column), ``int``, ``str`` or ``mixed``.
    ``vocabulary`` says what the labels mean, if the model has one; the estimator saves it.
    """

    vocabulary: Vocabulary | None = None

    def __init__(self, kind: str, count: int, *, arrays: Mapping[str, Any] | None = None, mixed: Sequence[Any] = ()):
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
            utf8, offsets = packed_strings.pack(plain)
            return cls("str", len(plain), arrays={UTF8: utf8, OFFSETS: offsets})
        return cls("mixed", len(plain), mixed=plain)

    def __len__(self) -> int:
        return self._count

    def named(self, ids: Sequence[int]) -> list[Any]:
        """The names of a few ids; labels without names stay ids."""
        return self._of_ids(np.array(ids, np.int64))

    def _of_ids(self, ids: npt.NDArray[np.integer[Any]]) -> list[Any]:
        if self.kind in ("ids", "int"):
            numbers: list[Any] = (ids if self.kind == "ids" else self._arrays[INTEGERS][ids]).tolist()
            return numbers
        if self.kind == "mixed":
            return [self._mixed[label] for label in ids.tolist()]
        return packed_strings.unpack(self._arrays[UTF8], self._arrays[OFFSETS], ids, what="a label name")

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
        """The names of an array of ids, in its shape; -1 becomes None. Labels without names stay ids."""
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

    def renamed(self, new: Mapping[Hashable, Hashable]) -> LabelNames:
        """The same labels with some names changed."""
        return LabelNames.of(new.get(name, name) for name in self.array.tolist()) if new else self

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
        return names._escaped()

    def _escaped(self) -> LabelNames:
        """The names with what is refused now escaped; they stay distinct."""
        if self.kind != "mixed" and not (self.kind == "str" and _breaks_the_rule(self._arrays[UTF8])):
            return self
        given = self._mixed if self.kind == "mixed" else self._of_ids(np.arange(self._count))
        escaped = [readable(name) for name in given]
        if escaped == given:
            return self
        taken = {new for old, new in zip(given, escaped, strict=True) if new == old}
        for label, (old, new) in enumerate(zip(given, escaped, strict=True)):
            if new != old:
                while new in taken:
                    new = f"{new}_"  # noqa: PLW2901 - the first free name
                taken.add(new)
                escaped[label] = new
        return LabelNames.of(escaped)

    def _is_sound(self) -> bool:
        if self.kind == "int":
            integers = self._arrays[INTEGERS]
            return bool(integers.dtype == np.int64 and integers.shape == (self._count,))
        if self.kind == "str":
            return packed_strings.are_sound(self._arrays[UTF8], self._arrays[OFFSETS], self._count)
        return self.kind == "ids" or len(self._mixed) == self._count


def _breaks_the_rule(utf8: npt.NDArray[np.uint8]) -> bool:
    """True if packed names contain a character that is refused; they are not decoded."""
    for start in range(0, len(utf8), _BYTES_AT_ONCE):
        part = utf8[start : start + _BYTES_AT_ONCE + 2]  # a character has up to three bytes
        one, two = part[:-1], part[1:]
        if (
            (((part < 0x20) & (part != 0x09)) | (part == 0x7F)).any()
            or ((one == 0xC2) & (two < 0xA0)).any()
            or ((one == 0xED) & (two >= 0xA0)).any()
            or ((part[:-2] == 0xE2) & (part[1:-1] == 0x80) & (part[2:] >= 0xA8) & (part[2:] <= 0xA9)).any()
        ):
            return True
    return False


def _objects(values: list[Any]) -> Objects:
    # np.array would turn a list of tuples into a matrix
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def _to_json(name: Any) -> Any:
    """A name as JSON that keeps its type: plain if JSON has the type, else ``{"type": value}``."""
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
