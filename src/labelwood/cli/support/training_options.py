"""The options of commands that train or estimate a training: method, encoder, their parameters, data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from labelwood.cli.support.columns import columns_to_keep, fields_of
from labelwood.cli.support.data_kind import has_texts, named_data
from labelwood.cli.support.inputs import (
    DEFAULT_ENCODER,
    DEFAULT_METHOD,
    encoder_flag,
    method_flag,
    named_in,
    read_data,
    read_texts,
)
from labelwood.cli.support.method_flags import ENCODER, METHOD, add_method_flags, as_usage_error
from labelwood.cli.support.parser import Options, Parser, UsageError
from labelwood.cli.support.safe_output import remark
from labelwood.data import Columns
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods import METHODS
from labelwood.methods.text_classifier import Model, TextClassifier
from labelwood.params import without_effect
from labelwood.run_context import RunContext
from labelwood.sparse import CSR
from labelwood.text import ENCODERS, TextEncoder, VectorEncoder
from labelwood.tuning.rules_of_thumb import Auto, rule_of_thumb
from labelwood.validation.targets import read_labels

AUTO = "auto"
_WITH_NAMES = "ranker"  # what auto takes if labels have texts
# Progress bars appear on terminals only, so the command line always asks for them.
_SET_HERE = {"verbose": True}


class Task(NamedTuple):
    """An unfitted model, its data, and the parameters given for the model and for its encoder.

    ``encoder`` is set if the encoder is already fitted, because the method was chosen by the encoded vectors.
    ``columns`` are kept by a model of texts.
    """

    model: Model
    X: Any
    Y: Any
    label_names: Any
    given: dict[str, Any]
    encoder_given: dict[str, Any]
    encoder: TextEncoder | None = None
    columns: Columns = Columns()

    def fitted(self) -> Model:
        """Return the model to save, after it was fitted."""
        if isinstance(self.model, TextClassifier):
            return TextClassifier.of(self.model.encoder_, self.model.classifier_, self.columns)
        if self.encoder is not None:
            return TextClassifier.of(self.encoder, self.model.classifier_, self.columns)
        return self.model


def add_training_options(parser: Parser, argv: list[str]) -> None:
    """Add flags for the method, the encoder and their parameters, and ``--json``."""
    method_flag(parser, AUTO)
    parser.json_flag()
    named = named_in(argv, "--method", DEFAULT_METHOD)
    if named == AUTO:
        add_method_flags(parser, Auto, name="any method", hidden_defaults=_SET_HERE)
    else:
        method = _known(named, METHODS, DEFAULT_METHOD)
        add_method_flags(parser, METHODS[method], name=method, hidden_defaults=_SET_HERE)
    add_encoder_options(parser, argv)


def add_encoder_options(parser: Parser, argv: list[str]) -> None:
    """Add flags for the encoder and its parameters."""
    encoder_flag(parser)
    encoder = _known(named_in(argv, "--encoder", DEFAULT_ENCODER), ENCODERS, DEFAULT_ENCODER)
    add_method_flags(
        parser,
        ENCODERS[encoder],
        name=f"the encoder {encoder}, for texts",
        hidden_defaults={},
        owner=ENCODER,
        without=("n_jobs",),  # the method's n_jobs counts
    )


def read_task(options: Options, clock: RunContext, prog: str) -> Task:
    """Return the model that the flags describe, and its data."""
    given, encoder_given = options.of(METHOD), encoder_parameters(options, prog)
    if options.method != AUTO:
        _refuse_without_effect(options, METHODS[options.method], given, METHOD)
    if not has_texts(options):
        with clock.phase("load"):
            dataset = read_data(options)
        model = _method(options, given, dataset.X, dataset.Y)
        return Task(model, dataset.X, dataset.Y, dataset.label_names, given, {})
    _refuse_without_effect(options, ENCODERS[options.encoder or DEFAULT_ENCODER], encoder_given, ENCODER)
    with clock.phase("load"):
        documents = read_texts(options)
    encoder: TextEncoder = ENCODERS[options.encoder or DEFAULT_ENCODER](**encoder_given, n_jobs=given.get("n_jobs"))
    if encoder.fields is not None and any(isinstance(text, str) for text in documents.texts[:1]):
        raise UsageError(f"{prog}: fields are columns of CSV, JSON lines or Parquet; {named_data(options)} has none")
    columns = columns_to_keep(options)
    method = options.method
    if method == AUTO and getattr(options, "label_texts", None) is not None:
        method = _WITH_NAMES
        remark(f"{method}: the labels have texts, and its second look compares them with each row")
    if method == AUTO:
        names, targets = read_labels(documents.labels, None, prog)
        with clock.phase("fit"):
            encoder = VectorEncoder(word_encoder=encoder) if documents.vectors is not None else encoder
            features = encoder.fit_encode(documents.inputs)
        chosen = _method(options, given, features, targets)
        return Task(chosen, features, targets, names.array.tolist(), given, encoder_given, encoder, columns)
    classifier = METHODS[method](**{**_SET_HERE, **given})
    whole = TextClassifier(classifier, encoder)
    return Task(whole, documents.inputs, documents.labels, None, given, encoder_given, columns=columns)


def _refuse_without_effect(options: Options, cls: type, given: Mapping[str, Any], owner: str) -> None:
    for name, why in without_effect(cls, given).items():
        options.refuse([owner + name], why)


def encoder_parameters(options: Options, prog: str) -> dict[str, Any]:
    """The parameters of the encoder that were given; the columns of --text with weights, or of --fields, are fields."""
    given = options.of(ENCODER)
    weights = fields_of(options)
    if "fields" in given and options.text is not None:
        raise UsageError(f"{prog}: --text and --fields exclude each other: both name the columns with the text")
    if given.get("fields") is not None:
        options.text = dict.fromkeys(given["fields"], 1.0)
    return given if weights is None else {**given, "fields": weights}


def _method(options: Options, given: Mapping[str, Any], X: CSR, Y: CSR) -> TreeEstimator:
    """Return the estimator to fit: the named method, or the one that the rules of thumb choose for the data."""
    if options.method != AUTO:
        return METHODS[options.method](**{**_SET_HERE, **given})
    choice = rule_of_thumb(X, Y)
    remark(f"{choice.method}: {choice.why}")
    return choice.estimator(**{**_SET_HERE, **given})


@contextlib.contextmanager
def explained(task: Task, prog: str) -> Iterator[None]:
    """Turn an error about a parameter into a usage error about its flag."""
    try:
        yield
    except LabelwoodError as error:
        model = task.model
        if not isinstance(model, TextClassifier):
            raise as_usage_error(error, model, task.given, prog) from None
        wrong = as_usage_error(error, model.encoder, task.encoder_given, prog)
        raise (as_usage_error(error, model.classifier, task.given, prog) if wrong is error else wrong) from None


def _known(name: str, names: Mapping[str, Any], default: str) -> str:
    return name if name in names else default  # parsing reports a wrong name
