"""Generate a data set: labelwood data synth OUT writes one of any size; the same seed gives the same data.

A directory (.lw) is written part by part, in memory that does not grow with the rows.
"""

from __future__ import annotations

from pathlib import Path

from labelwood.cli.support.output import print_dataset
from labelwood.cli.support.parser import Options, Parser, at_least, number, one_of
from labelwood.data.load_save import save_parts
from labelwood.data.synth import PUBLISHED, Shape, published, synth_parts
from labelwood.run_context import RunContext

EXAMPLES = (
    "labelwood data synth train.npz --rows 100000 --labels 20000",
    "labelwood data synth stream.npz --rows 1000000 --stream",
    "labelwood data synth train.lw --shape amazon-670k --scale 0.1",
    "labelwood data synth test.lw --shape amazon-670k --scale 0.1 --test",
)
_SIZES = {"rows": 100_000, "labels": 10_000, "features": 100_000}


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("action", metavar="ACTION", takes="synth", convert=one_of(("synth",)))
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
        help="seed of the random generator (default 0)",
    )
    parser.add_argument("--stream", action="store_true", help="let new labels appear up to the last row")
    names = f"one of {', '.join(PUBLISHED)}"
    parser.value(
        "--shape", metavar="NAME", takes=names, convert=one_of(PUBLISHED),
        help=f"rows, features and labels as in a public data set: {names}",
    )  # fmt: skip
    parser.value(
        "--scale", metavar="X", takes="a number greater than 0, at most 1", convert=number(above=0, most=1),
        default=1.0, help="with --shape: share of the rows, features and labels (default 1)",
    )  # fmt: skip
    parser.add_argument(
        "--test", action="store_true", help="write test rows: other rows with the same labels and words"
    )
    parser.json_flag()


def run(options: Options) -> int:
    """Generate the data and save it."""
    clock = RunContext()
    with clock.phase("shape"):
        shape, test_rows = _shape(options)
    with clock.phase("generate and save"):
        parts = synth_parts(shape, seed=options.seed, test_rows=test_rows if options.test else None)
        dataset = save_parts(options.output, parts)
    print_dataset(Path(options.output), dataset, clock.seconds, as_json=options.json)
    return 0


def _shape(options: Options) -> tuple[Shape, int]:
    """The shape, and the number of rows of a test set."""
    if options.shape is None:
        options.refuse(["--scale"], "it needs --shape")
        return Shape(options.rows, options.labels, options.features, stream=options.stream), options.rows
    options.refuse(["--rows", "--labels", "--features", "--stream"], "--shape sets the counts")
    return published(options.shape, scale=options.scale)
