"""Arguments that several commands share, and how models and data files are read from them."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from labelwood import data
from labelwood.cli.support.columns import columns_for, read_columns, remark_on_missing
from labelwood.cli.support.data_kind import has_texts, is_a_text, named_data, refuse_columns
from labelwood.cli.support.parser import VECTOR_FORMATS, Options, Parser, UsageError, at_least, one_of
from labelwood.cli.support.safe_output import remark
from labelwood.data import Dataset, TextDataset
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods import METHODS, load
from labelwood.methods.text_classifier import Model, TextClassifier, estimator_of
from labelwood.resources.memory import parse_bytes
from labelwood.scoring.thresholds import OBJECTIVES
from labelwood.sparse import CSR
from labelwood.text import ENCODERS, Document, Embedded
from labelwood.validation.targets import named_rows
from labelwood.vocabulary import Vocabulary, read_vocabulary
from labelwood.vocabulary.shown_names import ShownNames

DEFAULT_METHOD = "linear-tree"
DEFAULT_ENCODER = "tfidf"


def add_data_arguments(
    parser: Parser,
    *,
    label_names: bool = True,
    flag: str = "data",
    max_memory: str | None = "",
    vectors: bool = True,
    **more: Any,
) -> None:
    """Add DATA and the flags that say how to read it; ``label_names`` is False if the labels are not read.

    ``flag`` is ``--data`` for commands in which DATA is optional. ``max_memory`` says what else ``--max-memory``
    limits; None leaves the flag to the command. ``vectors`` is False if the command reads no vectors beside texts.
    ``more`` goes to the parser.
    """
    parser.value(
        flag,
        **{"nargs": "+", **more},
        metavar="DATA",
        takes="a data file",
        help="one or more files; texts: .csv, .tsv, .jsonl, .parquet, Annif, fastText, one text per line, or - for "
        "standard input; "
        "vectors: .txt or .xmc (XMC repository), .svm (svmlight), .npz, .lw; text files may be .gz, .bz2 or .xz",
    )
    parser.format_flag("--format", "DATA", (*data.TEXT_FORMATS, *VECTOR_FORMATS))
    if vectors:
        parser.value(
            "--vectors",
            metavar="FILE",
            takes="a .npy file with one row per text",
            help="texts: vectors beside the words, such as sentence embeddings: a .npy file, float32 or float16, one "
            "row per text, in the order of DATA",
        )
    else:
        parser.set_defaults(vectors=None)
    parser.value(
        "--text",
        metavar="NAME,NAME",
        takes="names of columns, separated by commas, such as title,body or title^2,body",
        convert=read_columns,
        help="texts: columns with the text, joined, or with weights, as fields: title^2,body (default: those of the "
        "model's training, else recognized by name)",
    )
    if max_memory is None:
        parser.set_defaults(max_memory=None)
    else:
        memory_flag(parser, max_memory)
    if not label_names:
        parser.set_defaults(label_names=False, labels=None, sep=None)
        return
    parser.value(
        "--labels",
        metavar="NAME",
        takes="the name of a column, or a file with the labels of each line",
        help="texts: column with the labels (default: that of the model's training, else recognized by name); for one "
        "text per line, a file with the labels of each line",
    )
    parser.value(
        "--sep",
        metavar="MARK",
        takes="the separator between two labels",
        help="texts: separator between two labels of a cell (default: the first of ; | , that occurs)",
    )
    parser.value(
        "--label-names",
        metavar="FILE",
        takes="a file with one label name per line, or none",
        convert=lambda text: text if text != "none" else False,
        help="vectors: file with one label name per line, or none to use ids (default: labels.txt beside DATA)",
    )


def add_model_argument(parser: Parser, *, threads: bool = True) -> None:
    """Add MODEL, and ``--n-jobs`` if the command can use several threads."""
    parser.value("model", metavar="MODEL", takes="the directory of a trained model")
    if threads:
        add_threads_argument(parser)
    else:
        parser.set_defaults(n_jobs=None)


def add_threads_argument(parser: Parser) -> None:
    """Add ``--n-jobs``."""
    parser.value(
        "--n-jobs",
        metavar="N",
        takes="an integer, at least 1, or -1 for all cores",
        convert=_threads,
        help="number of threads; -1 uses all cores (default: all cores)",
    )


def memory_flag(parser: Parser, more: str = "") -> None:
    """Add ``--max-memory``; ``more`` says what it limits beside the memory that a data file makes its reader need."""
    size_flag(
        parser,
        "--max-memory",
        help=f"memory limit{more}: a data file that decompresses to more, or whose labels need more, is refused "
        "(default: 1 GB or 100 times the file)",
    )


def size_flag(parser: Parser, flag: str, *, help: str, **more: Any) -> None:
    """Add a flag that takes a number of bytes."""

    def convert(text: str) -> int:
        return parse_bytes(text, owner=parser.prog, name=flag)

    parser.value(flag, metavar="SIZE", takes="a number of bytes, such as 500MB", convert=convert, help=help, **more)


def read_texts(
    options: Options, model: Model | None = None, *, needs_labels: bool = True, keep_table: bool = False
) -> TextDataset:
    """Read the texts in DATA: the columns that the flags name, else those that the model was trained on."""
    columns = columns_for(options, model)
    for path in options.data:
        refuse_columns(options, path)
    parts = [
        data.load_text(
            path,
            format=options.format,
            text=columns.text,
            labels=columns.labels,
            sep=columns.sep,
            needs_labels=needs_labels,
            keep_table=keep_table,
            max_memory=options.max_memory,
            fields=columns.fields,
        )
        for path in options.data
    ]
    found = TextDataset.joined(parts)
    if needs_labels and not any(found.labels or ()):
        raise LabelwoodError(
            f"{named_data(options)}: no row has a label; --labels names the column with the labels, or the file with "
            "those of plain lines"
        )
    if needs_labels and not found.splits:
        options.refuse(["--sep"], f"the labels in {named_data(options)} are lists, not strings to split")
    if columns.fields:
        remark_on_missing(found, columns.text or ())
    return found if options.vectors is None else replace(found, vectors=vectors_of(options, len(found.texts)))


def vectors_of(options: Options, n_texts: int) -> npt.NDArray[Any]:
    """Map the file of ``--vectors``."""
    return data.load_vectors(options.vectors, n_rows=n_texts)


def read_data(options: Options, *, n_features: int | None = None) -> Dataset:
    """Read the vectors in DATA; ``n_features`` is the number of features of the model."""
    return Dataset.joined(
        [
            data.load(
                path,
                format=options.format,
                label_names=options.label_names,
                n_features=n_features,
                max_memory=options.max_memory,
            )
            for path in options.data
        ]
    )


def read_model(options: Options) -> Model:
    """Read MODEL and set its number of threads and its progress bars."""
    model = load(options.model)
    estimator = estimator_of(model)
    estimator.verbose = True
    if options.n_jobs is not None:
        model.set_threads(options.n_jobs)
    return model


def read_rows(model: Model, options: Options) -> CSR:
    """Read the rows to predict: vectors, or texts, which the model encodes; DATA may be a literal text."""
    if model.takes == "text" and is_a_text(options):
        return model.encode(literal(model, options))
    if not has_texts(options):
        return read_data(options, n_features=estimator_of(model).n_features_in_).X
    return text_model(model, options).encode(read_texts(options, model, needs_labels=False).inputs)


def read_rows_and_truth(model: Model, options: Options) -> tuple[CSR, CSR]:
    """Read rows and their true labels as label ids of the model.

    Labels are matched by name if both sides have names, else by number.
    """
    estimator = estimator_of(model)
    if not has_texts(options):
        dataset = read_data(options, n_features=estimator.n_features_in_)
        labels: Any = dataset.Y
        if estimator.label_names.kind == "ids":
            refuse_names(options)
        elif dataset.label_names is not None:
            labels = named_rows(dataset.Y, dataset.label_names)
        return dataset.X, _known_truth(estimator, labels, options)
    encoder = text_model(model, options)
    documents = read_texts(options, model)
    truth = _known_truth(estimator, documents.labels, options)
    return encoder.encode(documents.inputs), truth


def _known_truth(estimator: TreeEstimator, labels: Any, options: Options) -> CSR:
    """The true labels by the ids of the model; an error if they are names of which the model knows none."""
    truth = estimator.encode_labels(labels)
    n_known = estimator.n_labels_
    if truth.nnz and int(truth.indices.min()) >= n_known and isinstance(labels, list):
        raise LabelwoodError(
            f"{options.model} knows none of the {truth.n_cols - n_known:,} labels in {named_data(options)}: labels "
            f"there are like {next(filter(None, labels))[0]!r}, those of the model like {estimator.classes_[0]!r}"
        )
    return truth


def refuse_names(options: Options) -> None:
    """Refuse a file of label names for a model that knows labels by number."""
    if options.label_names:
        options.refuse(["--label-names"], f"{options.model} was trained without names")


def text_model(model: Model, options: Options) -> Model:
    """The model, if it takes texts; else a usage error, because DATA holds texts."""
    if model.takes != "text":
        raise UsageError(
            f"labelwood: {options.model} was trained on vectors, but {named_data(options)} holds texts. "
            "Train a model on texts, or pass vectors."
        )
    return model


def literal(model: Model, options: Options) -> list[Document] | Embedded:
    """The document that DATA is, with its vector if there is one: a text, or a JSON object of the model's fields."""
    word: Any = options.data[0]
    if isinstance(model, TextClassifier) and model.field_names and word.lstrip().startswith("{"):
        try:
            word = json.loads(word)
        except ValueError as error:
            raise UsageError(f"labelwood: DATA is not a JSON object of the fields of the model ({error})") from None
    return [word] if options.vectors is None else Embedded([word], vectors_of(options, 1))


def label_of(model: Model, text: str) -> Hashable:
    """Return the label that a word of the command line means: a label, a name of its concept, or a number."""
    if text in model.label_names.index:
        return text
    concept = None if model.vocabulary_ is None else model.vocabulary_.resolve(text)
    if concept is not None and model.vocabulary_ is not None:
        return model.vocabulary_.uri(concept)
    return int(text) if text.lstrip("-").isdigit() else text


def language_flag(parser: Parser) -> None:
    """Add ``--language``, that of the names in the model's vocabulary."""
    parser.value(
        "--language",
        metavar="TAG",
        takes="a language tag, such as fi",
        help="language of the labels' names, for a model with a vocabulary (default: the one with the most names)",
    )


def names_for(model: Model, options: Options) -> ShownNames:
    """The names of the model's labels in the language that the flags name."""
    return ShownNames(model.vocabulary_, options.language)


def vocabulary_flag(parser: Parser, more: str = "") -> None:
    """Add ``--vocabulary``."""
    parser.value(
        "--vocabulary",
        metavar="FILE",
        takes="a vocabulary file",
        help=f"names and hierarchy of the labels: SKOS (.ttl, .rdf, .jsonld, .nt), Annif's TSV or CSV, a table{more}",
    )


def vocabulary_of(options: Options) -> Vocabulary | None:
    """Read the file of ``--vocabulary``, with remarks about what is odd in it; None if there is none."""
    if options.vocabulary is None:
        return None
    found = read_vocabulary(options.vocabulary, max_memory=getattr(options, "max_memory", None))
    for one in found.remarks:
        remark(f"{options.vocabulary}: {one}")
    return found.vocabulary


def method_flag(parser: Parser, *more: str) -> None:
    """Add ``--method``, which takes the name of a method or one of the words in ``more``."""
    names = (*METHODS, *more)
    takes = f"one of {', '.join(names)}"
    text = f"method: {takes} (default {DEFAULT_METHOD})"
    parser.value("--method", metavar="NAME", takes=takes, help=text, convert=one_of(names), default=DEFAULT_METHOD)


def objective_flag(parser: Parser) -> None:
    """Add ``--objective``."""
    takes = f"one of {', '.join(OBJECTIVES)}"
    parser.value(
        "--objective",
        metavar="WORD",
        takes=takes,
        convert=one_of(OBJECTIVES),
        help=f"goal of the ranking: {takes}; tail weights labels by inverse propensity, macro by inverse frequency",
    )


def executor_flag(parser: Parser, does: str) -> None:
    """Add ``--executor``."""
    takes = "threads, ray, or ray://host:port"

    def known(text: str) -> str:
        if text not in ("threads", "ray") and not text.startswith("ray://"):
            raise ValueError(text)
        return text

    parser.value(
        "--executor",
        metavar="WHERE",
        takes=takes,
        convert=known,
        help=f"where to {does}: {takes}; ray is the cluster at RAY_ADDRESS, or this machine (default threads)",
    )


def encoder_flag(parser: Parser) -> None:
    """Add ``--encoder``."""
    takes = f"one of {', '.join(ENCODERS)}"
    text = f"encoder that turns texts into vectors: {takes} (default {DEFAULT_ENCODER})"
    parser.value("--encoder", metavar="NAME", takes=takes, help=text, convert=one_of(ENCODERS))


def named_in(argv: list[str], flag: str, default: str) -> str:
    """Find the value of a flag before parsing: it decides which other flags exist."""
    name = default
    for position, word in enumerate(argv):
        if word == flag:
            name = " ".join(argv[position + 1 : position + 2])
        elif word.startswith(flag + "="):
            name = word.removeprefix(flag + "=")
    return name


def _threads(text: str) -> int:
    return -1 if text == "-1" else at_least(1)(text)
