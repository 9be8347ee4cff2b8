"""Plot a figure of one or more models: quality against trees, nodes, size or label frequency, and more."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from labelwood.cli.support.data_kind import DATA_FLAGS
from labelwood.cli.support.inputs import add_data_arguments, add_threads_argument, read_model, read_rows_and_truth
from labelwood.cli.support.output import print_facts, print_json
from labelwood.cli.support.parser import Options, Parser, UsageError, one_of
from labelwood.methods.text_classifier import estimator_of
from labelwood.viz.curves import FIGURES, Measured
from labelwood.viz.draw import draw

EXAMPLES = (
    "labelwood plot trees forest --data test.txt.xz -o trees.png",
    "labelwood plot recall model other-model --data held-out.csv -o recall.svg",
    "labelwood plot objective ldsm-model -o objective.png",
    "labelwood plot reliability model --data held-out.csv -o reliability.png",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    shown = "; ".join(f"{name}: {text}" for name, (text, _, _) in FIGURES.items())
    parser.value("figure", metavar="FIGURE", takes=f"one of {', '.join(FIGURES)}", convert=one_of(FIGURES), help=shown)
    parser.value("models", metavar="MODEL", takes="the directories of trained models", nargs="+")
    parser.value(
        "-o", "--output", metavar="FILE", takes="a file", convert=Path, help="file for the plot (.png, .svg, .pdf)"
    )
    add_data_arguments(parser, flag="--data")
    parser.count("-k", default=5, help="cutoff k of the metrics @k")
    parser.count("--rows", default=5000, help="number of rows to use, from the start of DATA")
    add_threads_argument(parser)
    parser.json_flag()


def run(options: Options) -> int:
    """Compute the curves, then draw them or print their points."""
    title, needs_data, make = FIGURES[options.figure]
    if needs_data and options.data is None:
        raise UsageError(f"labelwood plot: {options.figure} needs --data DATA, a file with known labels")
    if not needs_data:
        options.remark(("--data", "-k", "--rows", *DATA_FLAGS), f"{options.figure} needs no data")
    if options.output is None and not options.json:
        raise UsageError("labelwood plot: -o FILE is needed, or --json for the points")
    models, data = {}, {}
    for path in options.models:
        own = options.changed(model=path)
        whole = read_model(own)
        models[path] = estimator_of(whole)
        if needs_data:
            X, truth = read_rows_and_truth(whole, own)
            stop = min(options.rows, X.n_rows)
            data[path] = Measured(X.rows(0, stop), truth.rows(0, stop))
    figure = make(models, data, options.k) if needs_data else make(models)
    if options.output is not None:
        draw(figure, options.output, title=title)
    if options.json:
        print_json(asdict(figure))
    else:
        print_facts({"figure": title, "file": str(options.output)})
    return 0
