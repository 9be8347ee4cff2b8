"""What several commands take: data files and models, found, read and matched to each other."""

from __future__ import annotations

import argparse
from itertools import pairwise

from labelwood import data
from labelwood.cli.parser import Parser, at_least, one_of
from labelwood.data import Dataset
from labelwood.estimator import TreeEstimator
from labelwood.methods import METHODS, load
from labelwood.sparse import CSR

DEFAULT_METHOD = "linear-tree"


def add_data_arguments(parser: Parser, *, label_names: bool = True) -> None:
    """Add DATA and the flags that say how to read it; ``label_names`` if the names of its labels matter."""
    parser.value(
        "data",
        metavar="DATA",
        takes="a data file",
        help="a data file: .txt or .xmc (XMC repository), .svm (svmlight), .npz; text also .gz .bz2 .xz",
    )
    parser.format_flag("--format", "DATA")
    if label_names:
        parser.value(
            "--label-names",
            metavar="FILE",
            takes="a file with one label name a line, or none",
            convert=lambda text: text if text != "none" else False,
            help="a file with one label name a line, or none for ids (default: labels.txt beside the data)",
        )
    else:
        parser.set_defaults(label_names=False)


def add_model_argument(parser: Parser) -> None:
    """Add MODEL and the number of threads to use it with."""
    parser.value("model", metavar="MODEL", takes="the directory of a trained model")
    parser.value(
        "--n-jobs", metavar="N", takes="an integer, at least 1, or -1 for all cores", convert=_threads
    )


def read_data(options: argparse.Namespace, *, n_features: int | None = None) -> Dataset:
    """The data set of the command line; ``n_features`` is what the model knows."""
    return data.load(
        options.data, format=options.format, label_names=options.label_names, n_features=n_features
    )


def read_model(options: argparse.Namespace) -> TreeEstimator:
    """The model of the command line, set to the threads asked for and to progress bars on terminals."""
    model = load(options.model)
    model.verbose = True
    if options.n_jobs is not None:
        model.n_jobs = options.n_jobs
    return model


def truth_for(model: TreeEstimator, dataset: Dataset) -> CSR:
    """The labels of a data set as ids of the model: matched by name if both have names, else by number."""
    names = dataset.label_names
    if names is None or model._names.kind == "ids" or list(names) == model.classes_.tolist():
        return model._encode_labels(dataset.Y)
    bounds, ids = dataset.Y.indptr.tolist(), dataset.Y.indices.tolist()
    return model._encode_labels([[names[i] for i in ids[start:stop]] for start, stop in pairwise(bounds)])


def method_flag(parser: Parser) -> None:
    """Add ``--method``."""
    takes = f"one of {', '.join(METHODS)}"
    text = f"how to learn: {takes} (default {DEFAULT_METHOD})"
    parser.value(
        "--method", metavar="NAME", takes=takes, help=text, convert=one_of(METHODS), default=DEFAULT_METHOD
    )


def _threads(text: str) -> int:
    return -1 if text == "-1" else at_least(1)(text)
