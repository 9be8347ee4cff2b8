"""What several commands take: data files and models, found, read and matched to each other."""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from itertools import pairwise
from pathlib import Path
from typing import Any

from labelwood import data
from labelwood.cli.support.parser import VECTOR_FORMATS, Parser, UsageError, at_least, one_of
from labelwood.data import Dataset, TextDataset
from labelwood.estimator import TreeEstimator
from labelwood.methods import METHODS, load
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.scoring.thresholds import OBJECTIVES
from labelwood.sparse import CSR
from labelwood.text import ENCODERS

DEFAULT_METHOD = "linear-tree"
DEFAULT_ENCODER = "tfidf"


def add_data_arguments(parser: Parser, *, label_names: bool = True, flag: str = "data", **more: Any) -> None:
    """Add DATA and the flags that say how to read it; ``label_names`` if its labels matter.

    ``flag`` is ``--data`` for commands that can do without; ``more`` goes to the parser.
    """
    parser.value(
        flag,
        **more,
        metavar="DATA",
        takes="a data file",
        help="texts: .csv .tsv .jsonl .parquet, Annif, fastText, one a line, - for standard input; "
        "or vectors: .txt or .xmc (XMC repository), .svm (svmlight), .npz, .lw; also .gz .bz2 .xz",
    )
    parser.format_flag("--format", "DATA", (*data.TEXT_FORMATS, *VECTOR_FORMATS))
    parser.value(
        "--text",
        metavar="NAME,NAME",
        takes="names of columns, with commas between",
        convert=_names,
        help="texts: the columns that hold the text (default: found by their names)",
    )
    if not label_names:
        parser.set_defaults(label_names=False, labels=None, sep=None)
        return
    parser.value(
        "--labels",
        metavar="NAME",
        takes="the name of a column, or a file with the labels of each line",
        help="texts: the column that holds the labels (default: found by its name); for texts one a line, a file",
    )
    parser.value(
        "--sep",
        metavar="MARK",
        takes="what stands between two labels of a cell",
        help="texts: what stands between two labels of a cell (default: ; or | or , if the cells have it)",
    )
    parser.value(
        "--label-names",
        metavar="FILE",
        takes="a file with one label name a line, or none",
        convert=lambda text: text if text != "none" else False,
        help="vectors: a file with one label name a line, or none for ids (default: labels.txt beside the data)",
    )


def add_model_argument(parser: Parser) -> None:
    """Add MODEL and the number of threads to use it with."""
    parser.value("model", metavar="MODEL", takes="the directory of a trained model")
    add_threads_argument(parser)


def add_threads_argument(parser: Parser) -> None:
    """Add the number of threads."""
    parser.value(
        "--n-jobs", metavar="N", takes="an integer, at least 1, or -1 for all cores", convert=_threads
    )


def has_texts(options: argparse.Namespace) -> bool:
    """Whether DATA holds texts and not vectors: told by the flags, else by the file."""
    if options.format is not None:
        return options.format in data.TEXT_FORMATS
    return any((options.text, options.labels, options.sep)) or data.holds_text(options.data)


def read_texts(options: argparse.Namespace, *, needs_labels: bool = True) -> TextDataset:
    """The texts of the command line."""
    return data.load_text(
        options.data,
        format=options.format,
        text=options.text,
        labels=options.labels,
        sep=options.sep,
        needs_labels=needs_labels,
    )


def read_data(options: argparse.Namespace, *, n_features: int | None = None) -> Dataset:
    """The vectors of the command line; ``n_features`` is what the model knows."""
    return data.load(
        options.data, format=options.format, label_names=options.label_names, n_features=n_features
    )


def read_model(options: argparse.Namespace) -> Model:
    """The model of the command line, set to the threads asked for and to progress bars on terminals."""
    model = load(options.model)
    estimator = estimator_of(model)
    estimator.verbose = True
    if options.n_jobs is not None:
        model.set_threads(options.n_jobs)
    return model


def read_rows(model: Model, options: argparse.Namespace) -> CSR:
    """The rows to predict: vectors, or texts that go through the model's encoder; DATA may be a text itself."""
    if model.takes == "text" and is_a_text(options):
        return model.encode([options.data])
    if not has_texts(options):
        return read_data(options, n_features=estimator_of(model).n_features_in_).X
    return _encoder_of(model, options).encode(read_texts(options, needs_labels=False).texts)


def read_rows_and_truth(model: Model, options: argparse.Namespace) -> tuple[CSR, CSR]:
    """The rows to predict and their labels as ids of the model."""
    estimator = estimator_of(model)
    if not has_texts(options):
        dataset = read_data(options, n_features=estimator.n_features_in_)
        return dataset.X, _truth_for(estimator, dataset)
    encoder = _encoder_of(model, options)
    documents = read_texts(options)
    return encoder.encode(documents.texts), estimator.encode_labels(documents.labels)


def _encoder_of(model: Model, options: argparse.Namespace) -> Model:
    if model.takes != "text":
        raise UsageError(
            f"labelwood: {options.model} was trained on vectors and knows no texts; {options.data} holds texts. "
            "Train on texts, or give it vectors."
        )
    return model


def is_a_text(options: argparse.Namespace) -> bool:
    """Whether DATA is a text and no file: there is no such file, and nothing looks like the name of one."""
    word = options.data
    if word == "-" or options.format is not None or _exists(word):
        return False
    return " " in word.strip() or not Path(word).suffix


def label_of(model: Model, text: str) -> Hashable:
    """The label a word of the command line means: the name itself, or the number it spells."""
    if text not in model.label_names.index and text.lstrip("-").isdigit():
        return int(text)
    return text


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # too long for a name
        return False


def _truth_for(model: TreeEstimator, dataset: Dataset) -> CSR:
    """The labels of a data set as ids of the model: matched by name if both have names, else by number."""
    names = dataset.label_names
    if names is None or model.label_names.kind == "ids" or list(names) == model.classes_.tolist():
        return model.encode_labels(dataset.Y)
    bounds, ids = dataset.Y.indptr.tolist(), dataset.Y.indices.tolist()
    return model.encode_labels([[names[i] for i in ids[start:stop]] for start, stop in pairwise(bounds)])


def method_flag(parser: Parser, *more: str) -> None:
    """Add ``--method``, which takes a method or one of the words ``more``."""
    names = (*METHODS, *more)
    takes = f"one of {', '.join(names)}"
    text = f"how to learn: {takes} (default {DEFAULT_METHOD})"
    parser.value(
        "--method", metavar="NAME", takes=takes, help=text, convert=one_of(names), default=DEFAULT_METHOD
    )


def objective_flag(parser: Parser) -> None:
    """Add ``--objective``."""
    takes = f"one of {', '.join(OBJECTIVES)}"
    parser.value(
        "--objective",
        metavar="WORD",
        takes=takes,
        convert=one_of(OBJECTIVES),
        help=f"what the list is for, {takes}: tail weighs labels by inverse propensity, macro by inverse frequency",
    )


def executor_flag(parser: Parser, does: str) -> None:
    """Add ``--executor``, the place where a command does its work."""
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
        help=f"where to {does}: {takes}; ray is the cluster of RAY_ADDRESS, or this machine (default threads)",
    )


def encoder_flag(parser: Parser) -> None:
    """Add ``--encoder``."""
    takes = f"one of {', '.join(ENCODERS)}"
    text = f"how texts become vectors: {takes} (default {DEFAULT_ENCODER})"
    parser.value("--encoder", metavar="NAME", takes=takes, help=text, convert=one_of(ENCODERS))


def named_in(argv: list[str], flag: str, default: str) -> str:
    """The value of a flag before the words are parsed: the flags it brings decide how to parse them."""
    name = default
    for position, word in enumerate(argv):
        if word == flag:
            name = " ".join(argv[position + 1 : position + 2])
        elif word.startswith(flag + "="):
            name = word.removeprefix(flag + "=")
    return name


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(text)
    return names


def _threads(text: str) -> int:
    return -1 if text == "-1" else at_least(1)(text)
