"""What a pickle describes, without running it.

A pickle is a program: loading one may call any function. :func:`read_values` goes through its instructions and builds
plain values only. A class or function that the pickle names becomes a :class:`Named`, and its call a :class:`Made`,
that nothing runs. :func:`array_of` and :func:`matrix_of` read NumPy's arrays and SciPy's matrices out of these values.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.importing.files import Entries

_MOST_STEPS = 50_000_000
_MARK = object()
_KEYS = (str, bytes, int, float)


@dataclass(frozen=True)
class Named:
    """The name of a class or a function."""

    module: str
    name: str


@dataclass
class Made:
    """An object that the pickle makes by a call, with the state that it gives it afterwards."""

    by: Any
    arguments: Any
    state: Any = None
    items: list[Any] = field(default_factory=list)

    def name(self) -> str:
        """The name of the class or function."""
        return self.by.name if isinstance(self.by, Named) else ""

    def fields(self) -> dict[str, Any]:
        """The attributes of an object of a plain class."""
        if not isinstance(self.state, dict):
            raise FormatError(f"an object {self.name()!r:.40} has no attributes")
        return self.state


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise FormatError("the pickle is damaged: a value is missing")
        return value

    def top(self) -> Any:
        value = self.stack[-1]
        if value is _MARK:
            raise FormatError("the pickle is damaged: a value is missing")
        return value

    def since_mark(self) -> list[Any]:
        items = []
        while (value := self.stack.pop()) is not _MARK:
            items.append(value)
        return items[::-1]


def _literal(machine: _Machine, argument: Any) -> None:
    machine.stack.append(argument)


def _constant(make: Callable[[], Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, argument: machine.stack.append(make())


def _tuple_of(size: int) -> Callable[[_Machine, Any], None]:
    def run(machine: _Machine, argument: Any) -> None:
        items = [machine.pop() for _ in range(size)]
        machine.stack.append(tuple(reversed(items)))

    return run


def _put(machine: _Machine, argument: Any) -> None:
    machine.memo[len(machine.memo) if argument is None else int(argument)] = machine.top()


def _named(machine: _Machine, argument: Any) -> None:
    if argument is None:
        name, module = machine.pop(), machine.pop()
    else:
        module, _, name = str(argument).partition(" ")
    if not isinstance(name, str) or not isinstance(module, str):
        raise FormatError("the pickle is damaged: a name is not a text")
    machine.stack.append(Named(module, name))


def _made(machine: _Machine, argument: Any) -> None:
    arguments = machine.pop()
    machine.stack.append(Made(machine.pop(), arguments))


def _build(machine: _Machine, argument: Any) -> None:
    state, target = machine.pop(), machine.top()
    if not isinstance(target, Made):
        raise FormatError("the pickle is damaged: a value has no state")
    target.state = state


def _append(machine: _Machine, items: list[Any]) -> None:
    target = machine.top()
    (target.items if isinstance(target, Made) else target).extend(items)


def _set(machine: _Machine, items: list[Any]) -> None:
    target = machine.top()
    pairs = list(zip(items[::2], items[1::2], strict=True))
    if isinstance(target, Made):
        target.items.extend(pairs)
        return
    if not all(key is None or isinstance(key, _KEYS) for key, _ in pairs):  # the hash of nested tuples may never end
        raise FormatError("the pickle has a key that no model needs")
    target.update(pairs)


_LITERALS = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "STRING", "BINSTRING",
    "SHORT_BINSTRING",
)  # fmt: skip
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(_LITERALS, _literal),
    "NONE": _constant(lambda: None),
    "NEWTRUE": _constant(lambda: True),
    "NEWFALSE": _constant(lambda: False),
    "EMPTY_LIST": _constant(list),
    "EMPTY_DICT": _constant(dict),
    "EMPTY_TUPLE": _constant(tuple),
    "MARK": _constant(lambda: _MARK),
    "TUPLE": lambda machine, argument: machine.stack.append(tuple(machine.since_mark())),
    "LIST": lambda machine, argument: machine.stack.append(machine.since_mark()),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": lambda machine, argument: _append(machine, [machine.pop()]),
    "APPENDS": lambda machine, argument: _append(machine, machine.since_mark()),
    "SETITEM": lambda machine, argument: _set(machine, [machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, argument: _set(machine, machine.since_mark()),
    "MEMOIZE": _put,
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "GET": lambda machine, argument: machine.stack.append(machine.memo[int(argument)]),
    "BINGET": lambda machine, argument: machine.stack.append(machine.memo[argument]),
    "LONG_BINGET": lambda machine, argument: machine.stack.append(machine.memo[argument]),
    "GLOBAL": _named,
    "STACK_GLOBAL": _named,
    "REDUCE": _made,
    "NEWOBJ": _made,
    "BUILD": _build,
    "POP": lambda machine, argument: machine.stack.pop() and None,
    "PROTO": lambda machine, argument: None,
    "FRAME": lambda machine, argument: None,
}


def read_values(content: bytes) -> Any:
    """The value that a pickle describes; calls and classes stay as they are written."""
    machine = _Machine()
    try:
        for number, (step, argument, _) in enumerate(pickletools.genops(content)):
            if step.name == "STOP":
                return machine.pop()
            if step.name not in _STEPS or number > _MOST_STEPS:
                raise FormatError(f"the pickle has an instruction {step.name} that no model needs")
            _STEPS[step.name](machine, argument)
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the pickle is damaged ({' '.join(str(error).split())[:80]})") from None
    raise FormatError("the pickle does not end")


_TYPES = {"f4": np.float32, "f8": np.float64, "i4": np.int32, "i8": np.int64, "u4": np.uint32, "b1": np.bool_}


def array_of(value: Any) -> npt.NDArray[Any]:
    """The array that NumPy pickled: as a buffer (protocol 5), or as a shape, a type and bytes."""
    if not isinstance(value, Made):
        raise FormatError(f"an array is missing; got {type(value).__name__}")
    if value.name() in ("_frombuffer", "_numpy_frombuffer"):
        content, kind, shape, order = value.arguments
    elif value.name() == "_reconstruct":
        _, shape, kind, is_fortran, content = value.state
        order = "F" if is_fortran else "C"
    else:
        raise FormatError(f"an array is missing; got {value.name()!r:.40}")
    name = kind.arguments[0] if isinstance(kind, Made) and kind.name() == "dtype" else None
    if not isinstance(name, str) or name not in _TYPES or (kind.state is not None and kind.state[1] not in ("<", "|")):
        shown = name if isinstance(name, str) else type(name).__name__
        raise FormatError(f"an array has a type that no model has: {shown!r:.20}")
    if isinstance(content, Made):  # bytes of protocol 2 come as a call
        raise FormatError("an array is pickled by a protocol below 3")
    dtype = np.dtype(_TYPES[name])
    sides = tuple(int(side) for side in shape)
    size = int(np.prod(sides, dtype=object)) if sides else 1
    if min(sides, default=0) < 0 or size * dtype.itemsize != len(content) or order not in ("C", "F"):
        raise FormatError("an array does not have the bytes of its shape")
    return np.frombuffer(content, dtype).reshape(sides, order=order)


def matrix_of(value: Any) -> Entries:
    """The entries of a pickled SciPy or NumPy matrix."""
    if not isinstance(value, Made):
        raise FormatError(f"a matrix is missing; got {type(value).__name__}")
    form = value.name() if value.name() not in ("_reconstructor", "__newobj__") else ""
    if isinstance(value.arguments, tuple) and value.arguments and isinstance(value.arguments[0], Named) and not form:
        form = value.arguments[0].name
    if form not in ("csr_matrix", "csc_matrix", "csr_array", "csc_array"):
        whole = array_of(value)
        if whole.ndim != 2:
            raise FormatError("the weights must be a matrix")
        row, column = np.nonzero(whole)
        return Entries((whole.shape[0], whole.shape[1]), row, column, whole[row, column])
    state = value.fields()
    rows, columns = (int(side) for side in state["_shape"])
    pointer, minor, data = (array_of(state[name]) for name in ("indptr", "indices", "data"))
    outer, inner = (rows, columns) if form.startswith("csr") else (columns, rows)
    fits = len(pointer) == outer + 1 and pointer[0] == 0 and pointer[-1] == len(minor) == len(data)
    if not fits or np.any(np.diff(pointer) < 0) or (len(minor) and not 0 <= minor.min() <= minor.max() < inner):
        raise FormatError("a sparse matrix is damaged")
    major = np.repeat(np.arange(outer), np.diff(pointer))
    minor = minor.astype(np.int64)
    row, column = (major, minor) if form.startswith("csr") else (minor, major)
    return Entries((rows, columns), row, column, data)
