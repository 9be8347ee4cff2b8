"""Suggest labels for a text or for every row of a data file.

The output has one line per row: label:score label:score ..., best first. DATA may be a literal text.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    executor_flag,
    is_a_text,
    objective_flag,
    read_model,
    read_rows,
)
from labelwood.cli.support.output import open_output, shown_label, to_json
from labelwood.cli.support.parser import Parser, UsageError, at_least
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.scoring.thresholds import Objective

EXAMPLES = (
    'labelwood predict model "a text to find labels for"',
    "labelwood predict model more.csv --json -o suggestions.jsonl",
    "labelwood predict model test.txt.xz -k 5",
    "labelwood predict model test.txt.xz -k 50 --decide",
    "labelwood predict model test.txt.xz --objective tail",
    "labelwood predict model shards.parquet --executor ray -o suggestions.jsonl --json",
)
_BATCH = 8192  # rows formatted at a time


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser, label_names=False)
    parser.value(
        "-k",
        metavar="K",
        takes="an integer, at least 1",
        convert=at_least(1),
        default=5,
        help="labels per row (default 5)",
    )
    objective_flag(parser)
    executor_flag(parser, "predict")
    parser.add_argument(
        "--decide",
        action="store_true",
        help="write only labels that reach the thresholds of the model (set by labelwood calibrate, else 0.5)",
    )
    parser.value(
        "-o", "--output", metavar="FILE", takes="a file", convert=Path, help="output file (default: standard output)"
    )
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Predict all rows, then write the output."""
    if options.decide and options.objective is not None:
        raise UsageError(
            "labelwood predict: --decide and --objective exclude each other: thresholds are for probabilities"
        )
    model = read_model(options)
    estimator = estimator_of(model)
    as_text = _json_line if options.json else _plain_line
    with open_output(options.output) as file:
        for labels, scores in _predicted(model, options):
            chosen: Iterator[list[tuple[Any, float]]] = _rows(labels, scores)
            if options.decide:
                cuts = estimator.thresholds_of(labels)
                chosen = (
                    [pair for pair, cut in zip(row, own, strict=False) if pair[1] >= cut]
                    for row, own in zip(chosen, cuts.tolist(), strict=True)
                )
            file.writelines(as_text(row) + "\n" for row in chosen)
    return 0


def _predicted(model: Model, options: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """Yield labels and scores, for all rows at once or shard by shard."""
    objective: Objective | None = "precision" if options.decide else options.objective
    if options.executor not in (None, "threads") and not is_a_text(options):
        from labelwood.cli.support.predict_ray import predict_shards, shards_of  # noqa: PLC0415 - for Ray only

        shards = shards_of(options)
        if shards:
            yield from predict_shards(model, shards, options, objective)
            return
    rows = read_rows(model, options)
    yield estimator_of(model).predict_topk(rows, k=options.k, objective=objective, executor=options.executor)


def _rows(labels: Any, scores: Any) -> Iterator[list[tuple[Any, float]]]:
    """Yield the suggestions of each row as plain Python values, without padding."""
    for start in range(0, len(labels), _BATCH):
        stop = start + _BATCH
        for names, values in zip(labels[start:stop].tolist(), scores[start:stop].tolist(), strict=True):
            yield list(takewhile(_is_label, zip(names, values, strict=True)))


def _is_label(suggestion: tuple[Any, float]) -> bool:
    # Padding is -1 for ids and None for names; a label that is really called -1 has a score.
    label, score = suggestion
    return not (label is None or (label == -1 and score == 0.0))


def _plain_line(row: list[tuple[Any, float]]) -> str:
    return " ".join(f"{shown_label(label)}:{score:.6g}" for label, score in row)


def _json_line(row: list[tuple[Any, float]]) -> str:
    return to_json({"labels": [label for label, _ in row], "scores": [float(f"{score:.9g}") for _, score in row]})
