"""What the commands that train, or tell what training would take, have in common: a method, its flags, its data."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from labelwood.cli.inputs import (
    DEFAULT_ENCODER,
    DEFAULT_METHOD,
    Model,
    encoder_flag,
    has_texts,
    method_flag,
    named_in,
    read_data,
    read_texts,
)
from labelwood.cli.method_flags import ENCODER, add_method_flags, as_usage_error, flag_of, given_parameters
from labelwood.cli.parser import Parser, UsageError
from labelwood.errors import LabelwoodError
from labelwood.methods import METHODS
from labelwood.methods.text_classifier import TextClassifier
from labelwood.progress import Run
from labelwood.text import ENCODERS

# Progress is drawn on terminals only, so the command line may always ask for it.
_SET_HERE = {"verbose": True}


class Task(NamedTuple):
    """A model that is not fitted yet, its data, and the parameters given for it and for its encoder."""

    model: Model
    X: Any
    Y: Any
    label_names: Any
    given: dict[str, Any]
    encoder_given: dict[str, Any]


def add_learning_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the method, the encoder and their parameters, and ``--json``."""
    method_flag(parser)
    encoder_flag(parser)
    parser.json_flag()
    method = _known(named_in(argv, "--method", DEFAULT_METHOD), METHODS, DEFAULT_METHOD)
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


def read_learning(options: argparse.Namespace, clock: Run, prog: str) -> Task:
    """The model that the flags describe, and the data."""
    given, encoder_given = given_parameters(options), given_parameters(options, ENCODER)
    classifier = METHODS[options.method](**{**_SET_HERE, **given})
    if not has_texts(options):
        if options.encoder or encoder_given:
            flag = "--encoder" if options.encoder else flag_of(next(iter(encoder_given)))
            raise UsageError(
                f"{prog}: {flag} is for texts, but {options.data} holds vectors; see {prog} --help"
            )
        with clock.phase("load"):
            dataset = read_data(options)
        return Task(classifier, dataset.X, dataset.Y, dataset.label_names, given, {})
    encoder = ENCODERS[options.encoder or DEFAULT_ENCODER](**encoder_given, n_jobs=given.get("n_jobs"))
    with clock.phase("load"):
        documents = read_texts(options)
    model = TextClassifier(classifier, encoder)
    return Task(model, documents.texts, documents.labels, None, given, encoder_given)


@contextlib.contextmanager
def explained(task: Task, prog: str) -> Iterator[None]:
    """Turn an error about a parameter into one about its flag."""
    try:
        yield
    except LabelwoodError as error:
        model = task.model
        if not isinstance(model, TextClassifier):
            raise as_usage_error(error, model, task.given, prog) from None
        wrong = as_usage_error(error, model.encoder, task.encoder_given, prog)
        raise (
            as_usage_error(error, model.classifier, task.given, prog) if wrong is error else wrong
        ) from None


def _known(name: str, names: Mapping[str, Any], default: str) -> str:
    return name if name in names else default  # a wrong name is told when the words are parsed
