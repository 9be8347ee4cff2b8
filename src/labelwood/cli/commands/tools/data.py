"""Generate a data set: labelwood data synth OUT writes one of any size; the same seed gives the same data."""

from __future__ import annotations

from pathlib import Path

from labelwood.cli.support.output import print_dataset
from labelwood.cli.support.parser import Options, Parser, at_least, one_of
from labelwood.data import save
from labelwood.data.synth import Shape, synth
from labelwood.run_context import RunContext

EXAMPLES = (
    "labelwood data synth train.npz --rows 100000 --labels 20000",
    "labelwood data synth stream.npz --rows 1000000 --stream",
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
    parser.json_flag()


def run(options: Options) -> int:
    """Generate the data and save it."""
    clock = RunContext()
    shape = Shape(options.rows, options.labels, options.features, stream=options.stream)
    with clock.phase("generate"):
        dataset = synth(shape, seed=options.seed)
    with clock.phase("save"):
        save(options.output, dataset)
    print_dataset(Path(options.output), dataset, clock.seconds, as_json=options.json)
    return 0
