"""Explain the suggestions of a model: the path through the tree and the words that decided at each step.

DATA is a literal text, or a data file of which --row picks a row. Each word is shown with what it adds to the score of
a step.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from labelwood.cli.support.data_kind import is_a_text, named_data
from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    label_of,
    language_flag,
    literal,
    names_for,
    read_model,
    read_rows,
    read_texts,
)
from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Options, Parser, UsageError
from labelwood.explain import Explanation
from labelwood.explain.label_words import with_names
from labelwood.methods.text_classifier import Model

EXAMPLES = (
    'labelwood explain model "The court decided on the income tax"',
    'labelwood explain model "The court decided on the income tax" --missed taxation',
    "labelwood explain model test.txt.xz --row 12 -k 3 --json",
    "labelwood explain model more.csv --vectors more.npy --row 12",
    'labelwood explain model "Kissojen ruokinta" --language fi',
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser, threads=False)
    add_data_arguments(parser, label_names=False)
    parser.count("-k", default=3, help="number of suggestions to explain")
    parser.count("--row", default=1, help="row of the data file, counted from 1")
    parser.count("--words", default=8, help="words or features shown per step")
    parser.value(
        "--missed",
        metavar="LABEL",
        takes="a label of the model",
        action="append",
        default=[],
        help="show at which node this label was lost, and to which labels or nodes; may be repeated",
    )
    language_flag(parser)
    parser.json_flag()


def run(options: Options) -> int:
    """Explain one row."""
    model = read_model(options)
    names = names_for(model, options)
    explanation = with_names(_explanation(model, options), names.name)
    if options.json:
        print_json(asdict(explanation))
    else:
        print(explanation)
    return 0


def _explanation(model: Model, options: Options) -> Explanation:
    missed = [label_of(model, text) for text in options.missed]
    if model.takes == "text":
        is_text = is_a_text(options)
        texts = literal(model, options) if is_text else read_texts(options, model, needs_labels=False).inputs
        row = _row(options, len(texts))
        return model.explain(texts[row : row + 1], options.k, missed=missed, n_features=options.words)[0]
    rows = read_rows(model, options)
    number = _row(options, rows.n_rows)
    features: Any = rows.rows(number, number + 1)
    return model.explain(features, options.k, missed=missed, n_features=options.words)[0]


def _row(options: Options, n_rows: int) -> int:
    if options.row > n_rows:
        raise UsageError(
            f"labelwood explain: --row takes a row of {named_data(options)}, 1 to {n_rows}; got {options.row}"
        )
    return int(options.row) - 1
