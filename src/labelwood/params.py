"""Declarations of parameters: each is declared once, as an annotated keyword of ``__init__``.

    def __init__(self, *, arity: Annotated[int, Param("children of an inner node", ge=2)] = 16): ...

Validation, the flags of the command line, the tables of the documentation and the manifest of a model all read this
declaration through :func:`declared`.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from labelwood.errors import LabelwoodError

_JSON_KINDS = (list, tuple, dict)
_LARGEST_INT, _LARGEST_FLOAT = 2**31 - 1, 3.4e38  # kernels take int32 and float32
_KINDS_IN_WORDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    list: "a list",
    dict: "a dict",
    tuple: "a pair of integers",
}
TEXT_KINDS = (int, float, bool, *_JSON_KINDS, str)  # in the order in which Declared.read tries them


class Needs(NamedTuple):
    """What a parameter needs of the other parameters, by name, to have an effect; in words and as a function."""

    words: str
    are_met: Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Param:
    """The help text of a parameter, its range, and what it needs to have an effect."""

    help: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    needs: Needs | None = None


SEARCHES_BEAM = Needs("search=beam", lambda own: own["search"] == "beam")

NJobs = Annotated[
    int | None, Param("number of threads; None or -1 uses all cores, -2 all but one; the result is always the same")
]


@dataclass(frozen=True)
class Declared:
    """A declared parameter: name, types or choices, default, range and help."""

    name: str
    kinds: tuple[type, ...]
    choices: tuple[Any, ...]
    optional: bool
    default: Any
    param: Param

    @property
    def rule(self) -> str:
        """The rule for a value in words, such as ``an integer, at least 2``."""
        allowed = [_KINDS_IN_WORDS.get(kind, kind.__name__) for kind in self.kinds]
        if self.choices:
            allowed.append("one of " + ", ".join(repr(c) for c in self.choices))
        if self.optional:
            allowed.append("None")
        bounds = [
            f"{word} {_shown(bound)}"
            for word, bound in (
                ("at least", self.param.ge),
                ("greater than", self.param.gt),
                ("at most", self.param.le),
            )
            if bound is not None
        ]
        return " or ".join(allowed) + (", " + " and ".join(bounds) if bounds else "")

    def check(self, value: Any, owner: str) -> None:
        """Raise ``Owner: name must be <rule>; got <value>`` if the value breaks the rule."""
        if (value is None and self.optional) or any(type(value) is type(c) and value == c for c in self.choices):
            return
        for kind in self.kinds:
            if _is_a(value, kind):
                broken = self._broken_bound(value, kind) if kind in (int, float) else None
                if broken is None:
                    return
                raise LabelwoodError(f"{owner}: {self.name} must be {broken}; got {value!r}")
        raise LabelwoodError(f"{owner}: {self.name} must be {self.rule}; got {value!r}")

    def read(self, text: str) -> Any:
        """Convert a text to a value: none, a choice, or the first kind that it can be converted to; checked.

        Raises ValueError if there is no such kind. Kinds that have no text form, such as arrays, are ignored.
        """
        if self.optional and text.lower() == "none":
            return None
        for choice in self.choices:
            if text == str(choice):
                return choice
        for kind in TEXT_KINDS:
            if kind in self.kinds:
                try:
                    value = _from_text(text, kind)
                except ValueError:
                    continue
                self.check(value, self.name)
                return value
        raise ValueError(text)

    def _broken_bound(self, value: Any, kind: type) -> str | None:
        p = self.param
        if isinstance(value, float | np.floating) and not np.isfinite(value):
            return "finite"
        if p.ge is not None and value < p.ge:
            return f"at least {_shown(p.ge)}"
        if p.gt is not None and value <= p.gt:
            return f"greater than {_shown(p.gt)}"
        if p.le is not None and value > p.le:
            return f"at most {_shown(p.le)}"
        largest = _LARGEST_INT if kind is int else _LARGEST_FLOAT
        if p.le is None and not -largest <= value <= largest:
            return f"at most {_shown(largest)} in magnitude"
        return None


def _shown(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) and abs(bound) < 2**53 else f"{bound:g}"


def _from_text(text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if kind in _JSON_KINDS:
        value = json.loads(f"[{text}]" if kind is tuple and not text.startswith("[") else text)
        if not isinstance(value, dict if kind is dict else list):
            raise ValueError(text)
        return kind(value)
    return kind(text)


def _is_a(value: Any, kind: type) -> bool:
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    return isinstance(value, kind)


_READ: dict[type, Mapping[str, Declared]] = {}


def declared(cls: type) -> Mapping[str, Declared]:
    """Return the parameters of a class in the order of its ``__init__``; the result is cached."""
    if cls not in _READ:
        _READ[cls] = _read(cls)
    return _READ[cls]


def _read(cls: type) -> Mapping[str, Declared]:
    init = cls.__init__  # type: ignore[misc]
    hints = get_type_hints(init, include_extras=True)
    found: dict[str, Declared] = {}
    for name, parameter in inspect.signature(init).parameters.items():
        if name == "self":
            continue
        hint = hints[name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{cls.__name__}.{name} has no Param annotation")
        base, *extras = get_args(hint)
        param = next(extra for extra in extras if isinstance(extra, Param))
        members = get_args(base) if get_origin(base) in (Union, types.UnionType) else (base,)
        choices = tuple(c for m in members if get_origin(m) is Literal for c in get_args(m))
        kinds = tuple(get_origin(m) or m for m in members if get_origin(m) is not Literal and m is not type(None))
        found[name] = Declared(name, kinds, choices, type(None) in members, parameter.default, param)
    return types.MappingProxyType(found)


def check_parameters(estimator: Any) -> None:
    """Check every parameter of an estimator against its declaration."""
    for name, parameter in declared(type(estimator)).items():
        parameter.check(getattr(estimator, name), type(estimator).__name__)


def without_effect(cls: type, given: Mapping[str, Any]) -> dict[str, str]:
    """The given parameters that have no effect beside the others, each with the reason."""
    known = declared(cls)
    values = {name: parameter.default for name, parameter in known.items()} | dict(given)
    needs = {name: known[name].param.needs for name in given if name in known}
    return {name: f"it needs {one.words}" for name, one in needs.items() if one is not None and not one.are_met(values)}
