"""Split a data file into rows to train on and held-out rows, to measure and to calibrate on.

The rows are chosen at random by --seed and keep their order. Both files have the format of DATA. Files with the same
number of rows are split alike: the vectors beside texts (.npy) go with their texts.
"""

from __future__ import annotations

from pathlib import Path

from labelwood import data
from labelwood.cli.support.inputs import memory_flag
from labelwood.cli.support.output import print_facts, print_json
from labelwood.cli.support.parser import VECTOR_FORMATS, Options, Parser, UsageError, at_least, number
from labelwood.data.split import split_array, split_texts, split_vectors

EXAMPLES = (
    "labelwood split docs.csv train.csv held-out.csv",
    "labelwood split docs.npy train.npy held-out.npy",
    "labelwood split rows.txt.xz train.txt.xz held-out.txt.xz --share 0.2 --seed 1",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value(
        "data", metavar="DATA", takes="a data file of texts or vectors, or the .npy file of vectors beside texts"
    )
    parser.value("train", metavar="TRAIN", takes="the file for the rows to train on")
    parser.value("held_out", metavar="HELD_OUT", takes="the file for the held-out rows")
    parser.value(
        "--share",
        metavar="X",
        takes="a number between 0 and 1",
        convert=number(above=0, below=1),
        default=0.1,
        help="share of the rows to hold out (default 0.1)",
    )
    parser.value(
        "--seed",
        metavar="N",
        takes="an integer, at least 0",
        convert=at_least(0),
        default=0,
        help="seed of the random choice (default 0)",
    )
    parser.format_flag("--format", "DATA", (*data.TEXT_FORMATS, *VECTOR_FORMATS))
    memory_flag(parser)
    parser.json_flag()


def run(options: Options) -> int:
    """Write both files and print their numbers of rows."""
    targets = (options.train, options.held_out)
    if len({options.data, *targets}) < 3:
        raise UsageError("labelwood split: DATA, TRAIN and HELD_OUT must be three files")
    chosen = {"share": options.share, "seed": options.seed}
    if options.format is None and Path(options.data).suffix == ".npy":
        rows = split_array(options.data, targets, **chosen)
    else:
        is_text = data.holds_text(options.data) if options.format is None else options.format in data.TEXT_FORMATS
        split = split_texts if is_text else split_vectors
        rows = split(options.data, targets, format=options.format, max_memory=options.max_memory, **chosen)
    facts = {"train": {"file": options.train, "rows": len(rows.train)},
             "held_out": {"file": options.held_out, "rows": len(rows.held_out)}}  # fmt: skip
    if options.json:
        print_json(facts)
    else:
        print_facts(facts)
    return 0
