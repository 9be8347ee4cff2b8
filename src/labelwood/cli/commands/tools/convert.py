"""Convert a data file of vectors to another format; the suffixes name the formats."""

from __future__ import annotations

from pathlib import Path

from labelwood.cli.support.inputs import memory_flag
from labelwood.cli.support.output import print_dataset
from labelwood.cli.support.parser import Options, Parser
from labelwood.data import convert, load, save
from labelwood.data._files import guess_format
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
        help="the data file to write; .lw is a directory of mapped arrays, for data larger than memory",
    )
    parser.format_flag("--from", "IN")
    parser.format_flag("--to", "OUT")
    memory_flag(parser)
    parser.json_flag()


def run(options: Options) -> int:
    """Load the data and save it."""
    clock = RunContext()
    given = getattr(options, "from")
    if guess_format(Path(options.target), options.to) == "lw":
        with clock.phase("convert"):
            dataset = convert(
                options.source,
                options.target,
                source_format=given,
                target_format=options.to,
                max_memory=options.max_memory,
            )
    else:
        with clock.phase("load"):
            dataset = load(options.source, format=given, max_memory=options.max_memory)
        with clock.phase("save"):
            save(options.target, dataset, format=options.to)
    print_dataset(Path(options.target), dataset, clock.seconds, as_json=options.json)
    return 0
