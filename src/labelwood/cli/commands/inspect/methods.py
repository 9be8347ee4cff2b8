"""List the methods and their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Options, Parser
from labelwood.methods import METHODS
from labelwood.params import declared

EXAMPLES = ("labelwood methods", "labelwood methods --json")


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.json_flag()


def run(options: Options) -> int:
    """Print one line per method, or all parameters as JSON."""
    if options.json:
        print_json({name: _facts(cls) for name, cls in METHODS.items()})
        return 0
    width = max(map(len, METHODS))
    for name, cls in METHODS.items():
        print(f"{name:<{width}}  {cls.__name__}: {_summary(cls)}")
    print("\nRun labelwood train --method NAME --help for the parameters of a method.")
    return 0


def _summary(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def _facts(cls: type) -> dict[str, Any]:
    parameters = {
        name: {"takes": parameter.rule, "default": parameter.default, "help": parameter.param.help}
        for name, parameter in declared(cls).items()
    }
    return {"class": cls.__name__, "summary": _summary(cls), "parameters": parameters}
