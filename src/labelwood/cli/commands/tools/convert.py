"""Turn a data file into another format; the suffixes say which."""

from __future__ import annotations

import argparse
from pathlib import Path

from labelwood.cli.support.output import print_facts, print_json, shown_seconds
from labelwood.cli.support.parser import Parser
from labelwood.data import convert, load, save
from labelwood.data._files import guess_format
from labelwood.resources.memory import shown_bytes
from labelwood.run_context import RunContext

EXAMPLES = (
    "labelwood convert train.txt.xz train.npz",
    "labelwood convert train.svm train.xmc.gz",
    "labelwood convert big.txt.gz big.lw",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("source", metavar="IN", takes="the data file to read")
    parser.value(
        "target",
        metavar="OUT",
        takes="the data file to write",
        help="a .lw is a directory that training maps: it may be larger than memory",
    )
    parser.format_flag("--from", "IN")
    parser.format_flag("--to", "OUT")
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Load and save."""
    clock = RunContext()
    given = getattr(options, "from")
    if guess_format(Path(options.target), options.to) == "lw":
        with clock.phase("convert"):
            dataset = convert(options.source, options.target, source_format=given, target_format=options.to)
    else:
        with clock.phase("load"):
            dataset = load(options.source, format=given)
        with clock.phase("save"):
            save(options.target, dataset, format=options.to)
    target = Path(options.target)
    size = sum(file.stat().st_size for file in (target.iterdir() if target.is_dir() else [target]))
    facts = {
        "file": options.target,
        "rows": dataset.X.n_rows,
        "features": dataset.X.n_cols,
        "labels": dataset.Y.n_cols,
        "feature_entries": dataset.X.nnz,
        "label_entries": dataset.Y.nnz,
    }
    if options.json:
        seconds = {name: round(value, 4) for name, value in clock.seconds.items()}
        print_json({**facts, "bytes": size, "seconds": seconds})
    else:
        print_facts({**facts, "size": shown_bytes(size), "time": shown_seconds(clock.seconds)})
    return 0
