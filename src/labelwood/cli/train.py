"""Train a model on a data file and save it as a directory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from labelwood.cli.inputs import DEFAULT_METHOD, add_data_arguments, method_flag, read_data
from labelwood.cli.method_flags import add_method_flags, as_usage_error, given_parameters
from labelwood.cli.output import peak_memory, print_facts, print_json, shown_bytes, shown_seconds
from labelwood.cli.parser import Parser
from labelwood.errors import LabelwoodError
from labelwood.methods import METHODS
from labelwood.persist import check_target
from labelwood.progress import Run

EXAMPLES = (
    "labelwood train train.txt.xz -o model --n-trees 3 --random-state 0",
    "labelwood train --method one-vs-rest --help",
)
# Progress is drawn on terminals only, so the command line may always ask for it.
_SET_HERE = {"verbose": True}


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments; those of the method come with the method named in ``argv``."""
    add_data_arguments(parser)
    parser.value(
        "-o", "--output", metavar="MODEL", takes="the directory to write the model to", required=True
    )
    method_flag(parser)
    parser.json_flag()
    name = _method_in(argv)
    add_method_flags(parser, METHODS[name], name=name, hidden_defaults=_SET_HERE)


def run(options: argparse.Namespace) -> int:
    """Load, fit, save; report seconds by phase, sizes and the shape of the model."""
    target = Path(options.output)
    check_target(target.resolve())  # told before the training, not after it
    given = given_parameters(options)
    model = METHODS[options.method](**{**_SET_HERE, **given})
    clock = Run()
    with clock.phase("load"):
        dataset = read_data(options)
    with clock.phase("fit"):
        try:
            model.fit(dataset.X, dataset.Y, label_names=dataset.label_names)
        except LabelwoodError as error:
            raise as_usage_error(error, model, given, "labelwood train") from None
    with clock.phase("save"):
        model.save(target)
    facts = {
        "model": str(target),
        "method": options.method,
        "rows": dataset.X.n_rows,
        "features": dataset.X.n_cols,
        "labels": model.n_labels_,
        **model.describe(),
        "model_bytes": sum(file.stat().st_size for file in target.iterdir()),
        "peak_memory_bytes": peak_memory(),
        "seconds": _phases(clock.seconds, model.fit_seconds_),
    }
    if options.json:
        print_json(facts)
    else:
        _print(facts)
    return 0


def _phases(command: dict[str, float], fit: dict[str, float]) -> dict[str, float]:
    """The seconds of all phases in order; ``other`` is what fit spent outside its own, so they add up."""
    other = max(0.0, command["fit"] - sum(fit.values()))
    phases = {"load": command["load"], **fit, "other": other, "save": command["save"]}
    return {name: round(seconds, 4) for name, seconds in phases.items()}


def _print(facts: dict[str, Any]) -> None:
    peak = facts.pop("peak_memory_bytes")
    size, seconds = facts.pop("model_bytes"), facts.pop("seconds")
    memory = {} if peak is None else {"peak memory": shown_bytes(peak)}
    print_facts({**facts, "size": shown_bytes(size), **memory, "time": shown_seconds(seconds)})


def _method_in(argv: list[str]) -> str:
    """The method the words name, before they are parsed: its flags decide how to parse them."""
    name = DEFAULT_METHOD
    for position, word in enumerate(argv):
        if word == "--method":
            name = " ".join(argv[position + 1 : position + 2])
        elif word.startswith("--method="):
            name = word.removeprefix("--method=")
    return name if name in METHODS else DEFAULT_METHOD
