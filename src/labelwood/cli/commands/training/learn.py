"""Train an online model further, on texts or vectors from a file or a pipe.

With - as DATA, a model of vectors learns from standard input line by line: XMC (l1,l2 f:v f:v) or JSON
({"labels": ["a"], "features": {"12": 0.5}}). Without DATA, the model is only written to -o.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labelwood.cli.support.data_kind import DATA_FLAGS, has_texts, named_data
from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    read_data,
    read_model,
    read_texts,
    refuse_names,
    text_model,
)
from labelwood.cli.support.output import print_facts, print_json, shown_seconds
from labelwood.cli.support.parser import Options, Parser, UsageError
from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.online.learner import StreamLearner, learner_of
from labelwood.methods.text_classifier import Model
from labelwood.resources.memory import shown_bytes
from labelwood.run_context import RunContext
from labelwood.sparse import CSR

EXAMPLES = (
    "labelwood learn model today.csv",
    "labelwood learn model today.txt.gz",
    "tail -f examples.jsonl | labelwood learn model -",
    "labelwood learn model --inference-only -o small-model",
)
_THRESHOLD = 0.1  # weights of at most this size are dropped by --inference-only


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser, nargs="*")
    parser.value(
        "-o",
        "--output",
        metavar="MODEL",
        takes="a directory for the model",
        help="directory for the model (default: MODEL is replaced)",
    )
    parser.add_argument("--inference-only", action="store_true", help="leave out the state that further learning needs")
    parser.json_flag()


def run(options: Options) -> int:
    """Load the model, learn, save; an interrupt while reading stdin saves what was learned so far."""
    clock = RunContext()
    whole = read_model(options)
    model = learner_of(whole, owner=options.model)
    target = Path(options.output or options.model)
    if options.inference_only and options.output is None:
        raise LabelwoodError(
            "learn: --inference-only needs -o: without it, the state that further learning needs would be lost"
        )
    if not options.data:
        options.refuse(DATA_FLAGS, "there is no DATA to read")
    before, labels_before = model.n_seen_, model.n_labels_
    failure: LabelwoodError | None = None
    with clock.phase("learn"):
        if whole.takes == "text":
            _learn_texts(whole, model, options)
        elif options.data == ["-"]:
            options.refuse(DATA_FLAGS, "standard input is read line by line, as XMC or JSON")
            failure = _learn_lines(model, sys.stdin)
        elif options.data:
            _learn_file(model, options)
    with clock.phase("save"):
        small = model.freeze(weight_threshold=_THRESHOLD) if options.inference_only else model
        whole.with_classifier(small).save(target)
    if failure is not None:
        raise failure
    facts = {
        "model": str(target),
        "rows": model.n_seen_ - before,
        "labels": model.n_labels_,
        "new_labels": model.n_labels_ - labels_before,
        **model.describe(),
    }
    size = sum(file.stat().st_size for file in target.iterdir())
    if options.json:
        seconds = {name: round(value, 4) for name, value in clock.seconds.items()}
        print_json({**facts, "model_bytes": size, "seconds": seconds})
    else:
        print_facts({**facts, "size": shown_bytes(size), "time": shown_seconds(clock.seconds)})
    return 0


def _learn_texts(whole: Model, model: StreamLearner, options: Options) -> None:
    """Learn texts through the encoder; its vocabulary stays fixed, only a hashing encoder takes new words."""
    if options.data:
        if not has_texts(options):
            raise UsageError(f"labelwood learn: {options.model} takes texts, but {named_data(options)} holds vectors")
        documents = read_texts(options, whole)
        model.partial_fit(whole.encode(documents.inputs), documents.labels)


def _learn_file(model: StreamLearner, options: Options) -> None:
    if has_texts(options):
        text_model(model, options)
    dataset = read_data(options)
    X = dataset.X
    wide = CSR(X.indptr, X.indices, X.data, max(X.n_cols, model.n_features_in_))
    names = dataset.label_names
    if model.label_names.kind == "ids":
        refuse_names(options)
        names = None
    model.partial_fit(wide, dataset.Y, label_names=names)


def _learn_lines(model: StreamLearner, lines: Iterable[str]) -> LabelwoodError | None:
    """Learn line by line; return the error if a line could not be read."""
    by_column = model.label_names.kind == "ids"
    try:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                features, labels = _from_json(line) if line.lstrip().startswith("{") else _from_xmc(line)
                if by_column:
                    labels = [int(label) for label in labels]
                model.partial_fit([features], [labels])
            except (ValueError, TypeError) as error:
                return FormatError(f"stdin, line {number}: {error}; the lines before it were learned and saved")
    except KeyboardInterrupt:
        print("labelwood: interrupted; all lines read so far were learned and saved", file=sys.stderr)
    return None


def _from_json(line: str) -> tuple[dict[int, float], list[Any]]:
    record = json.loads(line)
    features, labels = record.get("features"), record.get("labels")
    if not isinstance(features, dict) or not isinstance(labels, list):
        raise ValueError('a JSON line must be {"labels": [...], "features": {"id": value}}')
    return {int(feature): float(value) for feature, value in features.items()}, labels


def _from_xmc(line: str) -> tuple[dict[int, float], list[Any]]:
    head, _, rest = line.rstrip("\r\n").partition(" ")
    features: dict[int, float] = {}
    for token in rest.split():
        feature, _, value = token.partition(":")
        features[int(feature)] = features.get(int(feature), 0.0) + (float(value) if value else 1.0)
    return features, [label for label in head.split(",") if label]
