"""Suggest labels for a text or for every row of a data file.

The output has one line per row: label:score label:score ..., best first. DATA may be a literal text. With - as DATA,
lines from standard input are answered as they arrive: texts, or vectors (l1,l2 f:v f:v) if the model takes vectors.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from labelwood.cli.support.columns import columns_for
from labelwood.cli.support.data_kind import has_texts, is_a_text, refuse_for_pipe
from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    executor_flag,
    language_flag,
    literal,
    names_for,
    objective_flag,
    read_data,
    read_model,
    read_texts,
    text_model,
)
from labelwood.cli.support.output import open_output, shown_label, to_json
from labelwood.cli.support.parser import Options, Parser, UsageError, at_least, number
from labelwood.cli.support.safe_output import remark
from labelwood.data.pipes import text_batches, vector_batches
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.scoring.roll_up import Parents, roll_up
from labelwood.scoring.thresholds import Objective
from labelwood.sparse import CSR
from labelwood.vocabulary.hierarchy import parents_of
from labelwood.vocabulary.shown_names import ShownNames

EXAMPLES = (
    'labelwood predict model "a text to find labels for"',
    "labelwood predict model more.csv --csv -o suggestions.csv",
    "labelwood predict model more.csv --json -o suggestions.jsonl",
    "tail -f letters.txt | labelwood predict model - --format lines",
    "labelwood predict model test.txt.xz -k 5",
    "labelwood predict model more.csv --vectors more.npy",
    "labelwood predict model more.csv --language sv",
    "labelwood predict model more.csv --roll-up 0.5",
    "labelwood predict model test.txt.xz -k 50 --decide",
    "labelwood predict model test.txt.xz --objective tail",
    "labelwood predict model shards.parquet --executor ray -o suggestions.jsonl --json",
)
_BATCH = 8192  # rows formatted at a time
_ROLLED_UP = 50  # labels of a row that may be rolled up
_REMEMBERED = 100_000  # concepts whose parents are looked up once

Suggestions = list[tuple[Any, float]]


class _Rows(NamedTuple):
    """Rows to predict, and the columns of DATA that CSV output repeats."""

    features: CSR
    table: Mapping[str, Sequence[Any]]


class _Predicted(NamedTuple):
    """Labels and scores, [rows, k], and the columns of DATA that CSV output repeats."""

    labels: Any
    scores: Any
    table: Mapping[str, Sequence[Any]]


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
    parser.value(
        "--roll-up",
        metavar="X",
        takes="a number between 0 and 1",
        convert=number(above=0, below=1),
        help="for a model with a vocabulary: write labels that score at least X, and where the children of a concept "
        "are less certain, the concept above them, if it is certain that one of them is right",
    )
    language_flag(parser)
    parser.json_flag()
    parser.add_argument(
        "--csv",
        action="store_true",
        help="write CSV: the columns of DATA, then label_1, score_1, label_2, score_2, ...; with a vocabulary also "
        "name_1, name_2, ...",
    )


def run(options: Options) -> int:
    """Predict all rows and write the output; rows from standard input are answered as they arrive."""
    if options.decide and options.objective is not None:
        raise UsageError(
            "labelwood predict: --decide and --objective exclude each other: thresholds are for probabilities"
        )
    if options.roll_up is not None:
        options.refuse(["--decide", "--objective"], "--roll-up decides by its own threshold, on probabilities")
    if options.csv and options.json:
        raise UsageError("labelwood predict: --csv and --json exclude each other")
    model = read_model(options)
    estimator = estimator_of(model)
    if not options.csv:  # whose columns follow from -k alone
        options.k = min(options.k, max(estimator.n_labels_, 1))
    with open_output(options.output) as file:
        names = names_for(model, options)
        table = _CsvOutput(file, names) if options.csv else None
        as_text = _json_line if options.json else _plain_line
        wide = options if options.roll_up is None else options.changed(k=max(options.k, _ROLLED_UP))
        parents = None if options.roll_up is None else _parents(model, options)
        for found in _predicted(model, wide):
            chosen: Iterator[Suggestions] = _suggestions(found.labels, found.scores)
            if options.decide:
                cuts = estimator.thresholds_of(found.labels)
                chosen = (
                    [pair for pair, cut in zip(row, own, strict=False) if pair[1] >= cut]
                    for row, own in zip(chosen, cuts.tolist(), strict=True)
                )
            if parents is not None:
                chosen = (roll_up(row, parents, options.roll_up)[: options.k] for row in chosen)
            if table is not None:
                table.write(found._replace(labels=found.labels[:, : options.k]), chosen)
            else:
                file.writelines(as_text(row, names) + "\n" for row in chosen)
            file.flush()
    return 0


def _parents(model: Model, options: Options) -> Parents:
    """A function from a label to the URIs of its broader concepts."""
    vocabulary = model.vocabulary_
    if vocabulary is None or not len(parents_of(vocabulary).parent):
        raise UsageError(
            f"labelwood predict: --roll-up needs a model whose vocabulary has broader concepts; got {options.model}"
        )

    @lru_cache(_REMEMBERED)
    def parents(label: Hashable) -> list[str]:
        concept = vocabulary.resolve(label)
        return [] if concept is None else vocabulary.uris_of(vocabulary.linked(concept))

    return parents


def _predicted(model: Model, options: Options) -> Iterator[_Predicted]:
    """Yield labels and scores: for all rows at once, shard by shard, or as rows arrive."""
    objective: Objective | None = "precision" if options.decide else options.objective
    if options.executor not in (None, "threads") and not is_a_text(options):
        from labelwood.cli.support.predict_ray import predict_shards, shards_of  # noqa: PLC0415 - for Ray only

        options.refuse(["--vectors"], "vectors beside texts are predicted on this machine, without --executor")
        shards = shards_of(options)
        if shards and options.csv:
            raise UsageError("labelwood predict: --csv is not possible with shards on Ray; use --json")
        if shards:
            for labels, scores in predict_shards(model, shards, options, objective):
                yield _Predicted(labels, scores, {})
            return
    for rows in _rows(model, options):
        found = estimator_of(model).predict_topk(
            rows.features, k=options.k, objective=objective, executor=options.executor
        )
        yield _Predicted(*found, rows.table)


def _rows(model: Model, options: Options) -> Iterator[_Rows]:
    """Yield the rows of DATA: all at once, or from standard input as they arrive."""
    n_features = estimator_of(model).n_features_in_
    if model.takes == "text" and is_a_text(options):
        features = model.encode(literal(model, options))
        _remark_on_unknown(model, features)
        yield _Rows(features, {"text": options.data})
    elif options.data == ["-"]:
        refuse_for_pipe(options)
        estimator_of(model).verbose = False  # one bar per batch would flicker
        pipe: Any = sys.stdin.buffer
        if model.takes == "text" if options.format is None else has_texts(options):
            if options.format in ("annif", "fasttext", "lines"):
                options.refuse(["--text"], f"{options.format} has no columns")
            options.refuse(["--vectors"], "texts from standard input are answered as they arrive, without vectors")
            columns, encoder = columns_for(options, model), text_model(model, options)
            for batch in text_batches(pipe, format=options.format, columns=columns, keep_table=options.csv):
                yield _Rows(encoder.encode(batch.texts), batch.table or {})
        else:
            start = 1
            for features in vector_batches(pipe, format=options.format, n_features=n_features):
                yield _Rows(features, {"row": range(start, start + features.n_rows)})
                start += features.n_rows
    elif has_texts(options):
        documents = read_texts(options, model, needs_labels=False, keep_table=options.csv)
        features = text_model(model, options).encode(documents.inputs)
        _remark_on_unknown(model, features)
        yield _Rows(features, documents.table or {})
    else:
        features = read_data(options, n_features=n_features).X
        yield _Rows(features, {"row": range(1, features.n_rows + 1)})


def _remark_on_unknown(model: Model, texts: CSR) -> None:
    """Say how many texts have no word that the model knows: they all get the same suggestions."""
    if texts.dense_part is not None:
        return
    estimator = estimator_of(model)
    unknown = texts.n_rows - int(np.count_nonzero(np.diff(texts.indptr)))
    if texts.n_rows == 1 and not estimator.knows_any(texts):
        remark("the model knows no word of this text; it suggests the same labels for every such text")
    elif unknown:
        remark(f"the model knows no word of {unknown:,} of {texts.n_rows:,} texts; these all get the same labels")


class _CsvOutput:
    """Writes the columns of DATA and the suggestions of each row; the first rows decide which columns there are."""

    def __init__(self, file: TextIO, names: ShownNames) -> None:
        self._names = names
        self._writer = csv.writer(file, lineterminator="\n")
        self._columns: list[str] | None = None

    def write(self, found: _Predicted, rows: Iterator[Suggestions]) -> None:
        """Write the rows, after the header if they are the first."""
        width = found.labels.shape[1]
        parts = ("label", "name", "score") if self._names else ("label", "score")
        own = [f"{name}_{place}" for place in range(1, width + 1) for name in parts]
        if self._columns is None:
            self._columns = [name for name in found.table if name not in own]
            self._writer.writerow([*self._columns, *own])
        empty = [None] * len(found.labels)
        cells = zip(*(found.table.get(name, empty) for name in self._columns), strict=True)
        for row in rows:
            suggested = [text for label, score in row for text in self._cells(label, score)]
            repeated = map(_cell, next(cells, ()))
            self._writer.writerow([*repeated, *suggested, *[""] * (len(parts) * (width - len(row)))])

    def _cells(self, label: Any, score: float) -> list[Any]:
        named = [self._names.name(label)] if self._names else []
        return [label, *named, f"{score:.6g}"]


def _cell(value: Any) -> Any:
    """A cell of CSV output: lists and objects of JSON lines as JSON."""
    return value if value is None or isinstance(value, str | int | float) else to_json(value)


def _suggestions(labels: Any, scores: Any) -> Iterator[Suggestions]:
    """Yield the suggestions of each row as plain Python values, without padding."""
    for start in range(0, len(labels), _BATCH):
        stop = start + _BATCH
        for names, values in zip(labels[start:stop].tolist(), scores[start:stop].tolist(), strict=True):
            yield list(takewhile(_is_label, zip(names, values, strict=True)))


def _is_label(suggestion: tuple[Any, float]) -> bool:
    # Padding is -1 for ids and None for names; a label that is really called -1 has a score.
    label, score = suggestion
    return not (label is None or (label == -1 and score == 0.0))


def _plain_line(row: Suggestions, names: ShownNames) -> str:
    return " ".join(f"{shown_label(names.shown(label))}:{score:.6g}" for label, score in row)


def _json_line(row: Suggestions, names: ShownNames) -> str:
    scores = [float(f"{score:.9g}") for _, score in row]
    found: dict[str, Any] = {"labels": [label for label, _ in row], "scores": scores}
    if names:
        found["names"] = [names.name(label) for label, _ in row]
    return to_json(found)
