"""Estimate the size of the model, the peak memory and the time of a training, each with a confidence band.

Label trees count the features that the nodes of a quickly grown tree use, and train a sample of its classifiers. Other
methods train one tree on a part of the rows.
"""

from __future__ import annotations

from pathlib import Path

from labelwood.cli.support.inputs import add_data_arguments
from labelwood.cli.support.output import print_facts, print_json, print_table, shown
from labelwood.cli.support.parser import Options, Parser
from labelwood.cli.support.training_options import add_training_options, explained, read_task
from labelwood.errors import LabelwoodError
from labelwood.resources.estimate import Banded, Estimate
from labelwood.resources.memory import shown_bytes
from labelwood.run_context import RunContext

EXAMPLES = (
    "labelwood estimate train.txt.xz --n-trees 3",
    "labelwood estimate docs.csv --text title,body --labels tags",
    "labelwood estimate train.txt.xz --tree kmeans --arity 100 --weight-threshold none --plot levels.png",
)
_PROG = "labelwood estimate"


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments, with the parameters of the method and the encoder that ``argv`` names."""
    add_data_arguments(parser)
    parser.value(
        "--plot",
        metavar="FILE",
        takes="a file for the plot",
        help="label trees: plot weights and feature shares by level to this file (.png, .svg)",
    )
    add_training_options(parser, argv)


def run(options: Options) -> int:
    """Load the data, estimate, print."""
    task = read_task(options, RunContext(), _PROG)
    with explained(task, _PROG):
        found = task.model.estimate(task.X, task.Y, label_names=task.label_names)
    if options.plot:
        _plot(found, Path(options.plot))
    if options.json:
        print_json(found.facts())
    else:
        _print(found)
    return 0


def _print(found: Estimate) -> None:
    facts = {
        "method": found.method,
        "model": _bytes(found.model_bytes),
        "peak memory": _bytes(found.peak_bytes),
        "time": f"{found.seconds.value:.2f} s ({found.seconds.low:.2f} to {found.seconds.high:.2f})",
    }
    if found.bound_bytes is not None:
        facts["bound of the paper"] = shown_bytes(found.bound_bytes)
    if found.ratio is not None and found.one_vs_rest_bytes is not None:
        facts["one-vs-rest"] = f"{shown_bytes(found.one_vs_rest_bytes)} with every weight"
        facts["tree / one-vs-rest"] = (
            f"{found.ratio:.4f} with every weight; {found.paper_ratio:.4f} by the paper's 12 and 8 bytes a weight"
        )
    print_facts({**facts, "estimated in": f"{found.estimate_seconds:.2f} s"})
    if found.levels:
        print()
        print_table(
            ["depth", "nodes", "children", "features used", "weights", "share of parent's features"],
            [
                [
                    str(level.depth),
                    *(shown(n) for n in (level.nodes, level.children, level.used_features, level.weights)),
                    f"{level.alpha:.3f}",
                ]
                for level in found.levels
            ],
        )
    if found.choices:
        print()
        print_table(
            ["instead", "model", "peak memory"],
            [
                [choice.setting, shown_bytes(choice.model_bytes), shown_bytes(choice.peak_bytes)]
                for choice in found.choices
            ],
        )


def _bytes(estimated: Banded) -> str:
    if estimated.low == estimated.high:
        return f"{shown_bytes(estimated.value)} at most"
    return f"{shown_bytes(estimated.value)} ({shown_bytes(estimated.low)} to {shown_bytes(estimated.high)})"


def _plot(found: Estimate, path: Path) -> None:
    if not found.levels:
        raise LabelwoodError(f"{_PROG}: --plot is for label trees; {found.method} has no levels to draw")
    try:
        from matplotlib.figure import Figure as Drawing  # noqa: PLC0415 - an extra
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as above
    except ImportError:
        raise LabelwoodError("--plot needs matplotlib: pip install 'labelwood[plots]'") from None
    drawing = Drawing(figsize=(8, 3.2), layout="constrained")
    left, right = drawing.subplots(1, 2)
    depths = [level.depth for level in found.levels]
    left.bar(depths, [level.weights for level in found.levels])
    left.set(xlabel="depth", ylabel="weights, Eq. (18)")
    right.bar(depths, [level.alpha for level in found.levels])
    right.set(xlabel="depth", ylabel="share of parent's features, Eq. (45)", ylim=(0, 1))
    for axes in (left, right):
        axes.set_xlim(-0.6, max(depths) + 0.6)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    drawing.savefig(path, dpi=150)
