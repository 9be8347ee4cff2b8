"""The flags of a method, derived from the declarations of its parameters."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from labelwood.cli.support.parser import Parser, UsageError
from labelwood.errors import LabelwoodError
from labelwood.params import TEXT_KINDS, Declared, declared

# Prefixes of the destination of a flag, so that it cannot clash with a flag of the command.
METHOD, ENCODER = "parameter ", "encoder parameter "


def add_method_flags(
    parser: Parser,
    cls: type,
    *,
    name: str,
    hidden_defaults: Mapping[str, Any],
    owner: str = METHOD,
    without: Sequence[str] = (),
) -> None:
    """Add a flag for every parameter of a method or an encoder whose values can be written as text.

    ``hidden_defaults`` gives the defaults of parameters that the command sets itself. Parameters in ``without`` get no
    flag.
    """
    group = parser.add_argument_group(f"parameters of {name}")
    for parameter in map(_expressible, declared(cls).values()):
        if parameter.name in without:
            continue
        flag = flag_of(parameter.name)
        if owner == ENCODER and parser.has_flag(flag):  # the method has a parameter of the same name
            flag = "--encoder-" + flag.removeprefix("--")
        default = _shown(hidden_defaults.get(parameter.name, parameter.default))
        common: dict[str, Any] = {"dest": owner + parameter.name, "default": argparse.SUPPRESS}
        if parameter.kinds == (bool,) and not parameter.choices:
            text = _escaped(f"{_lower_none(parameter.param.help)} (default {default})")
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=text, **common)
        elif parameter.kinds or parameter.choices:
            takes = _shown_rule(parameter)
            text = _escaped(f"{_lower_none(parameter.param.help)} ({takes}; default {default})")
            metavar = _metavar(parameter)
            convert = parameter.read
            parser.value(flag, takes=takes, convert=convert, into=group, help=text, metavar=metavar, **common)


def as_usage_error(error: LabelwoodError, model: object, given: Mapping[str, Any], prog: str) -> Exception:
    """Return a usage error if the error is about a parameter that was given, else the error itself."""
    match = re.match(rf"{type(model).__name__}: (\w+) (must .*)", str(error), re.DOTALL)
    if match is None or match[1] not in given:
        return error
    return UsageError(f"{prog}: {flag_of(match[1])} {match[2]}")


def flag_of(name: str) -> str:
    """Return the flag of a parameter."""
    return "--" + name.replace("_", "-")


def in_flags(message: str, parser: Parser) -> str:
    """Return a message of the library in the words of the command line.

    ``name='value'`` and names with an underscore become flags if the command has the flag; ``None`` becomes none, and
    the quotes that docstrings put around code are dropped.
    """

    def flag(match: re.Match[str]) -> str:
        name = flag_of(match["name"])
        return f"{name} {match['value']}" if parser.has_flag(name) else match[0]

    def bare(match: re.Match[str]) -> str:
        return flag_of(match[0]) if parser.has_flag(flag_of(match[0])) else match[0]

    message = message.replace("``", "")
    message = re.sub(r"\b(?P<name>[A-Za-z]\w*)=(?P<quote>'?)(?P<value>[\w.+-]+)(?P=quote)", flag, message)
    return _lower_none(re.sub(r"(?<![\w/.-])[a-z]+(?:_[a-z]+)+(?![\w/.])", bare, message))


def _expressible(parameter: Declared) -> Declared:
    """Return the parameter without the kinds of value that cannot be written as text, such as arrays."""
    return replace(parameter, kinds=tuple(kind for kind in parameter.kinds if kind in TEXT_KINDS))


def _metavar(parameter: Declared) -> str:
    if parameter.choices and not parameter.kinds:
        return "WORD"
    return {int: "N", float: "X", str: "TEXT", bool: "BOOL", tuple: "N,N"}.get(parameter.kinds[0], "JSON")


def _shown_rule(parameter: Declared) -> str:
    return _lower_none(parameter.rule).replace("'", "")


def _lower_none(text: str) -> str:
    """Spell None as the command line takes it."""
    return re.sub(r"\bNone\b", "none", text)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")  # argparse expands % in help texts


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
