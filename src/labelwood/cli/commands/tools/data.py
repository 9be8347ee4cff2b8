"""Make data: ``labelwood data synth OUT`` generates a data set of any size, the same for the same seed."""

from __future__ import annotations

import argparse
from pathlib import Path

from labelwood.cli.support.output import print_facts, print_json, shown_seconds
from labelwood.cli.support.parser import Parser, at_least
from labelwood.data import save
from labelwood.data.synth import Shape, synth
from labelwood.resources.memory import shown_bytes
from labelwood.run_context import RunContext

EXAMPLES = (
    "labelwood data synth train.npz --rows 100000 --labels 20000",
    "labelwood data synth stream.npz --rows 1000000 --stream",
)
_SIZES = {"rows": 100_000, "labels": 10_000, "features": 100_000}


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("action", metavar="ACTION", takes="synth", convert=_action)
    parser.value("output", metavar="OUT", takes="the data file to write")
    for name, default in _SIZES.items():
        takes = "an integer, at least 1"
        parser.value(
            f"--{name}", metavar="N", takes=takes, convert=at_least(1), default=default,
            help=f"number of {name} (default {default})",
        )  # fmt: skip
    parser.value(
        "--seed",
        metavar="N",
        takes="an integer, at least 0",
        convert=at_least(0),
        default=0,
        help="seed (default 0)",
    )
    parser.add_argument("--stream", action="store_true", help="labels keep appearing to the last row")
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Generate and save."""
    clock = RunContext()
    shape = Shape(options.rows, options.labels, options.features, stream=options.stream)
    with clock.phase("generate"):
        dataset = synth(shape, seed=options.seed)
    with clock.phase("save"):
        save(options.output, dataset)
    facts = {
        "file": options.output,
        "rows": dataset.X.n_rows,
        "features": dataset.X.n_cols,
        "labels": dataset.Y.n_cols,
        "feature_entries": dataset.X.nnz,
        "label_entries": dataset.Y.nnz,
    }
    size = Path(options.output).stat().st_size
    if options.json:
        print_json(
            {**facts, "bytes": size, "seconds": {name: round(s, 4) for name, s in clock.seconds.items()}}
        )
    else:
        print_facts({**facts, "size": shown_bytes(size), "time": shown_seconds(clock.seconds)})
    return 0


def _action(text: str) -> str:
    if text != "synth":
        raise ValueError(text)
    return text
