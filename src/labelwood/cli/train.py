"""Train a model on a data file, texts or vectors, and save it as a directory."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelwood.cli.inputs import (
    DEFAULT_ENCODER,
    DEFAULT_METHOD,
    add_data_arguments,
    encoder_flag,
    has_texts,
    method_flag,
    named_in,
    read_data,
    read_texts,
)
from labelwood.cli.method_flags import ENCODER, add_method_flags, as_usage_error, flag_of, given_parameters
from labelwood.cli.output import peak_memory, print_facts, print_json, remark, shown_bytes, shown_seconds
from labelwood.cli.parser import Parser, UsageError
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator, read_labels
from labelwood.methods import METHODS
from labelwood.methods.text_classifier import Model, TextClassifier, estimator_of
from labelwood.persist import check_target
from labelwood.progress import Run
from labelwood.sparse import CSR
from labelwood.text import ENCODERS
from labelwood.tuning.rules import Auto, rule_of_thumb

EXAMPLES = (
    'labelwood train docs.csv -o model --text title,body --labels tags --sep ";"',
    "labelwood train train.txt.xz -o model --n-trees 3 --random-state 0",
    "labelwood train docs.csv -o model --method auto",
    "labelwood train --method one-vs-rest --help",
)
_PROG = "labelwood train"
# Progress is drawn on terminals only, so the command line may always ask for it.
_SET_HERE = {"verbose": True}
AUTO = "auto"


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments; those of the method and the encoder come with the ones named in ``argv``."""
    add_data_arguments(parser)
    parser.value(
        "-o", "--output", metavar="MODEL", takes="the directory to write the model to", required=True
    )
    method_flag(parser, AUTO)
    encoder_flag(parser)
    parser.json_flag()
    named = named_in(argv, "--method", DEFAULT_METHOD)
    if named == AUTO:
        add_method_flags(parser, Auto, name="any method", hidden_defaults=_SET_HERE)
    else:
        method = _known(named, METHODS, DEFAULT_METHOD)
        add_method_flags(parser, METHODS[method], name=method, hidden_defaults=_SET_HERE)
    encoder = _known(named_in(argv, "--encoder", DEFAULT_ENCODER), ENCODERS, DEFAULT_ENCODER)
    add_method_flags(
        parser,
        ENCODERS[encoder],
        name=f"the encoder {encoder}, for texts",
        hidden_defaults={},
        owner=ENCODER,
        without=("n_jobs",),  # as many as the method
    )


def run(options: argparse.Namespace) -> int:
    """Load, fit, save; report seconds by phase, sizes and the shape of the model."""
    target = Path(options.output)
    check_target(target.resolve())  # told before the training, not after it
    clock = Run()
    model: Model
    if has_texts(options):
        model, n_rows = _train_on_texts(options, clock)
    else:
        model, n_rows = _train_on_vectors(options, clock)
    with clock.phase("save"):
        model.save(target)
    estimator = estimator_of(model)
    facts = {
        "model": str(target),
        "method": estimator.method_name,
        **({"encoder": model.encoder_.encoder_name} if isinstance(model, TextClassifier) else {}),
        "rows": n_rows,
        "features": estimator.n_features_in_,
        "labels": estimator.n_labels_,
        **estimator.describe(),
        "model_bytes": sum(file.stat().st_size for file in target.iterdir()),
        "peak_memory_bytes": peak_memory(),
        "seconds": _phases(clock.seconds, estimator.fit_seconds_),
    }
    if options.json:
        print_json(facts)
    else:
        _print(facts)
    return 0


def _train_on_vectors(options: argparse.Namespace, clock: Run) -> tuple[Model, int]:
    given = given_parameters(options)
    stray = [flag_of(name) for name in given_parameters(options, ENCODER)]
    if options.encoder or stray:
        flag = "--encoder" if options.encoder else stray[0]
        raise UsageError(
            f"{_PROG}: {flag} is for texts, but {options.data} holds vectors; see {_PROG} --help"
        )
    with clock.phase("load"):
        dataset = read_data(options)
    model = _method(options, given, dataset.X, dataset.Y)
    with clock.phase("fit"):
        try:
            model.fit(dataset.X, dataset.Y, label_names=dataset.label_names)
        except LabelwoodError as error:
            raise as_usage_error(error, model, given, _PROG) from None
    return model, dataset.X.n_rows


def _train_on_texts(options: argparse.Namespace, clock: Run) -> tuple[Model, int]:
    given, encoder_given = given_parameters(options), given_parameters(options, ENCODER)
    encoder = ENCODERS[options.encoder or DEFAULT_ENCODER](**encoder_given, n_jobs=given.get("n_jobs"))
    with clock.phase("load"):
        documents = read_texts(options)
    if options.method == AUTO:
        names, targets = read_labels(documents.labels, None, _PROG)
        with clock.phase("fit"):
            features = encoder.fit_encode(documents.texts)
            chosen = _method(options, given, features, targets)
            chosen.fit(features, targets, label_names=names.array.tolist())
        return TextClassifier.of(encoder, chosen), len(documents.texts)
    classifier = METHODS[options.method](**{**_SET_HERE, **given})
    model = TextClassifier(classifier, encoder)
    with clock.phase("fit"):
        try:
            model.fit(documents.texts, documents.labels)
        except LabelwoodError as error:
            wrong = as_usage_error(error, encoder, encoder_given, _PROG)
            raise (as_usage_error(error, classifier, given, _PROG) if wrong is error else wrong) from None
    return model, len(documents.texts)


def _method(options: argparse.Namespace, given: Mapping[str, Any], X: CSR, Y: CSR) -> TreeEstimator:
    """The estimator to fit: the method named, or what the rules of thumb say of the data."""
    if options.method != AUTO:
        return METHODS[options.method](**{**_SET_HERE, **given})
    choice = rule_of_thumb(X, Y)
    remark(f"{choice.method}: {choice.why}")
    return choice.estimator(**{**_SET_HERE, **given})


def _phases(command: dict[str, float], fit: dict[str, float]) -> dict[str, float]:
    """The seconds of all phases in order; ``other`` is what fit spent outside its own, so they add up."""
    other = max(0.0, command["fit"] - sum(fit.values()))
    phases = {"load": command["load"], **fit, "other": other, "save": command["save"]}
    return {name: round(seconds, 4) for name, seconds in phases.items()}


def _print(facts: dict[str, Any]) -> None:
    peak = facts.pop("peak_memory_bytes")
    size, seconds = facts.pop("model_bytes"), facts.pop("seconds")
    memory = {} if peak is None else {"peak memory": shown_bytes(peak)}
    print_facts({**facts, "size": shown_bytes(size), **memory, "time": shown_seconds(seconds)})


def _known(name: str, names: Mapping[str, Any], default: str) -> str:
    return name if name in names else default  # a wrong name is told when the words are parsed
