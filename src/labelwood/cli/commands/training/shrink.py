"""Prune and quantize a label-tree model, and show size and precision on held-out data for several settings.

Precision is in percent. Without -o, nothing is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    read_model,
    read_rows_and_truth,
    size_flag,
)
from labelwood.cli.support.output import print_json, print_table
from labelwood.cli.support.parser import Options, Parser, UsageError, number, one_of
from labelwood.errors import LabelwoodError
from labelwood.methods.label_tree.base import LinearModel
from labelwood.methods.label_tree.shrinkable import DTYPES, Shrunk
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.resources.memory import shown_bytes
from labelwood.storage.model_directory import check_target

EXAMPLES = (
    "labelwood shrink model held-out.txt.xz",
    "labelwood shrink model held-out.txt.xz -o small --threshold 0.2 --dtype int8",
    "labelwood shrink model held-out.txt.xz -o small --target-size 10MB",
)
_PROG = "labelwood shrink"
_KS = (1, 3, 5)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.value("-o", "--output", metavar="MODEL", takes="the directory for the smaller model")
    parser.value(
        "--threshold",
        metavar="X",
        takes="a number, at least 0",
        convert=number(least=0),
        help="drop weights whose magnitude is at most this",
    )
    size_flag(parser, "--target-size", help="drop the smallest weights until the model has at most this size")
    parser.value(
        "--dtype",
        metavar="WORD",
        takes=f"one of {', '.join(DTYPES)}",
        convert=one_of(DTYPES),
        help=f"number format of the weights: one of {', '.join(DTYPES)}",
    )
    parser.value(
        "--curve",
        metavar="X,X",
        takes="numbers, at least 0, separated by commas",
        convert=lambda text: [number(least=0)(part) for part in text.split(",")],
        default=[0.05, 0.1, 0.2, 0.3, 0.5],
        help="thresholds to measure (default 0.05,0.1,0.2,0.3,0.5)",
    )
    parser.json_flag()


def run(options: Options) -> int:
    """Measure the curve, shrink the model as the flags say, measure the result and save it."""
    if options.threshold is not None and options.target_size is not None:
        raise UsageError(f"{_PROG}: --threshold and --target-size exclude each other")
    chosen = {name: getattr(options, name) for name in ("threshold", "target_size", "dtype")}
    asked = {name: value for name, value in chosen.items() if value is not None}
    if options.output is not None:
        check_target(options.output)
        if not asked:
            raise UsageError(f"{_PROG}: -o needs --threshold, --target-size or --dtype")
    whole = read_model(options)
    model = _shrinkable(whole, options.model)
    rows, truth = read_rows_and_truth(whole, options)
    points = model.shrink_curve(rows, truth.to_scipy(), thresholds=options.curve, ks=_KS)
    if asked:
        if options.threshold is not None:
            model.prune(threshold=options.threshold)
        if options.dtype is not None:
            model.quantize(options.dtype)
        if options.target_size is not None:
            model.prune(target_size=options.target_size)
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        points.append(model.measured(f"asked: {words}", rows, truth, _KS))
    if options.output is not None:
        whole.save(Path(options.output))
    if options.json:
        print_json({"rows": truth.n_rows, "curve": [_facts(point) for point in points]})
    else:
        _print(points)
    return 0


def _shrinkable(whole: Model, path: str) -> LinearModel:
    model = estimator_of(whole)
    if not model.can_shrink:
        raise LabelwoodError(f"{path}: only label-tree models can be shrunk; this is {model.method_name}")
    return cast(LinearModel, model)


def _facts(point: Shrunk) -> dict[str, Any]:
    precision = {f"P@{k}": round(100 * value, 6) for k, value in point.precision.items()}
    return {"setting": point.setting, "model_bytes": point.model_bytes, **precision}


def _print(points: list[Shrunk]) -> None:
    first = points[0].precision
    print_table(
        ["percent", "size", *(f"P@{k}" for k in _KS), *(f"lost@{k}" for k in _KS)],
        [
            [
                point.setting,
                shown_bytes(point.model_bytes),
                *(f"{100 * point.precision[k]:.2f}" for k in _KS),
                *(f"{100 * (first[k] - point.precision[k]):.2f}" for k in _KS),
            ]
            for point in points
        ],
    )
