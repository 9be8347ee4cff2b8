"""Show versions, instruction set, cores, memory and extras of this installation, and what is missing.

The exit code is 1 if something that Labelwood needs does not work.
"""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import numpy as np

from labelwood import LinearTree, __version__, _core
from labelwood.cli.support.output import print_facts, print_json
from labelwood.cli.support.parser import Options, Parser
from labelwood.resources.memory import available, shown_bytes
from labelwood.run_context import available_cores

EXAMPLES = ("labelwood doctor", "labelwood doctor --json")

_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)")
_EXTRA = re.compile(r"extra == ['\"]([a-z]+)['\"]")


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.json_flag()


def run(options: Options) -> int:
    """Look at everything, train a tiny model, print what was found."""
    needed, extras = _requirements()
    installed = {name: _version(name) for name in needed}
    missing = {extra: lacking for extra, names in extras.items() if (lacking := [n for n in names if not _version(n)])}
    free = available()
    facts: dict[str, Any] = {
        "labelwood": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "machine": f"{platform.system()} {platform.machine()}",
        "instruction_set": _core.isa(),
        "cores": available_cores(),
        "free_memory": None if free is None else shown_bytes(free),
        "packages": {name: found or "missing" for name, found in installed.items()},
        "extras": {
            extra: "installed"
            if extra not in missing
            else f"missing {', '.join(missing[extra])}; pip install 'labelwood[{extra}]'"
            for extra in extras
        },
        "training": _trial(),
    }
    if options.json:
        print_json(facts)
    else:
        print_facts(facts)
    return 0 if facts["training"] == "works" and all(installed.values()) else 1


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The packages that Labelwood needs, and those of each extra."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in requires("labelwood") or []:
        found, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        if found is not None:
            (needed if extra is None else extras.setdefault(extra[1], [])).append(found[1])
    return needed, extras


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _trial() -> str:
    """Whether a model of two labels can be trained and asked."""
    X = np.eye(2, dtype=np.float32)
    top = LinearTree(n_jobs=1).fit(X, [["first"], ["second"]]).predict_topk(X, k=1)[0]
    return "works" if top.tolist() == [["first"], ["second"]] else f"gives wrong labels: {top.tolist()}"
