"""The flags of a method, read off the one declaration of its parameters."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from labelwood.cli.parser import Parser
from labelwood.params import Declared, declared

_PREFIX = "parameter "  # a destination no other flag can have
_JSON_KINDS = (list, tuple, dict)


def add_method_flags(parser: Parser, cls: type, *, name: str, hidden_defaults: dict[str, Any]) -> None:
    """Add a flag for every parameter of a method that a command line can express.

    ``hidden_defaults`` replaces the default shown for parameters that the command itself sets.
    """
    group = parser.add_argument_group(f"parameters of {name}")
    for parameter in declared(cls).values():
        flag = "--" + parameter.name.replace("_", "-")
        default = hidden_defaults.get(parameter.name, parameter.default)
        text = f"{parameter.param.help} ({_shown_rule(parameter)}; default {_shown(default)})".replace("%", "%%")
        common = {"dest": _PREFIX + parameter.name, "default": argparse.SUPPRESS, "help": text}
        if parameter.kinds == (bool,) and not parameter.choices:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
        elif parameter.choices or _convertible(parameter):
            metavar = _metavar(parameter)
            parser.value(
                flag, takes=_shown_rule(parameter), convert=_converter(parameter), into=group, metavar=metavar, **common
            )


def given_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters the user gave, by name."""
    return {key.removeprefix(_PREFIX): value for key, value in vars(options).items() if key.startswith(_PREFIX)}


def _convertible(parameter: Declared) -> bool:
    return any(kind in (int, float, bool, str, *_JSON_KINDS) for kind in parameter.kinds)


def _converter(parameter: Declared) -> Callable[[str], Any]:
    """Text to the first meaning it can have: none, a choice, a whole number, a number, true or false, JSON, text."""

    def convert(text: str) -> Any:
        if parameter.optional and text.lower() == "none":
            return None
        for choice in parameter.choices:
            if text == str(choice):
                return choice
        for kind in (int, float, bool, *_JSON_KINDS, str):
            if kind in parameter.kinds:
                try:
                    value = _read(text, kind)
                except ValueError:
                    continue
                parameter.check(value, parameter.name)
                return value
        raise ValueError(text)

    return convert


def _read(text: str, kind: type) -> Any:
    if kind is bool:
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _refuse(text)
    if kind in _JSON_KINDS:
        value = json.loads(text)
        wanted = dict if kind is dict else list
        return kind(value) if isinstance(value, wanted) else _refuse(text)
    return kind(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _metavar(parameter: Declared) -> str:
    if parameter.choices and not parameter.kinds:
        return "WORD"
    return {int: "N", float: "X", str: "TEXT", bool: "BOOL"}.get(parameter.kinds[0], "JSON")


def _shown_rule(parameter: Declared) -> str:
    return parameter.rule.replace("None", "none").replace("'", "")


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)
