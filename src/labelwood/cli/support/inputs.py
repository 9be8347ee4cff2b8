"""Arguments that several commands share, and how models and data files are read from them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelwood import data
from labelwood.cli.support.method_flags import ENCODER
from labelwood.cli.support.parser import VECTOR_FORMATS, Options, Parser, UsageError, at_least, one_of
from labelwood.data import Columns, Dataset, TextDataset
from labelwood.data._files import guess_format
from labelwood.errors import LabelwoodError
from labelwood.methods import METHODS, load
from labelwood.methods.text_classifier import Model, TextClassifier, estimator_of
from labelwood.resources.memory import parse_bytes
from labelwood.scoring.thresholds import OBJECTIVES
from labelwood.sparse import CSR
from labelwood.text import ENCODERS
from labelwood.validation.targets import named_rows

DEFAULT_METHOD = "linear-tree"
DEFAULT_ENCODER = "tfidf"

# Flags that matter only for some data.
_FOR_TEXTS, _FOR_VECTORS, _FOR_FILES = (
    ("--text", "--labels", "--sep", "--encoder"),
    ("--label-names",),
    ("--max-memory",),
)
DATA_FLAGS = ("--format", *_FOR_TEXTS, *_FOR_VECTORS, *_FOR_FILES)


def add_data_arguments(
    parser: Parser, *, label_names: bool = True, flag: str = "data", max_memory: str | None = "", **more: Any
) -> None:
    """Add DATA and the flags that say how to read it; ``label_names`` is False if the labels are not read.

    ``flag`` is ``--data`` for commands in which DATA is optional. ``max_memory`` says what else ``--max-memory``
    limits; None leaves the flag to the command. ``more`` goes to the parser.
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
    parser.value(
        "--text",
        metavar="NAME,NAME",
        takes="names of columns, separated by commas",
        convert=_names,
        help="texts: columns with the text (default: those of the model's training, else recognized by name)",
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


def has_texts(options: Options) -> bool:
    """True if DATA holds texts, False if it holds vectors; flags for the other kind are refused."""
    is_text = _holds_texts(options)
    if is_text:
        options.refuse(_FOR_VECTORS, f"it is for vectors, but {named_data(options)} holds texts")
    else:
        encoding = [name for name in vars(options) if name.startswith(ENCODER)]
        why = f"it is for texts, but {named_data(options)} holds vectors; if not, say so by --format"
        options.refuse((*_FOR_TEXTS, *encoding), why)
    return is_text


def _holds_texts(options: Options) -> bool:
    """The flags decide, else the files."""
    if options.format is not None:
        return options.format in data.TEXT_FORMATS
    if any((options.text, options.labels, options.sep)):
        return not all(map(_holds_vectors, options.data))
    found = {data.holds_text(path): path for path in options.data}
    if len(found) > 1:
        raise UsageError(
            f"labelwood: {found[True]} holds texts, but {found[False]} holds vectors; pass one kind of data"
        )
    return found.popitem()[0]


def _holds_vectors(path: str) -> bool:
    """True if a file certainly holds vectors: by its suffix, and if it is plain text by its first line."""
    if path == data.STANDARD_INPUT or not Path(path).exists() or data.holds_text(path):
        return False
    try:
        guess_format(Path(path), None)
    except LabelwoodError:
        return False
    return True


def columns_of(options: Options) -> Columns:
    """The columns that the flags name."""
    return Columns(None if options.text is None else tuple(options.text), options.labels, options.sep)


def columns_to_keep(options: Options) -> Columns:
    """The columns that a model keeps of its training; the file of labels of plain lines is no column."""
    named = columns_of(options)
    return replace(named, labels=None) if named.labels is not None and Path(named.labels).is_file() else named


def read_texts(
    options: Options, model: Model | None = None, *, needs_labels: bool = True, keep_table: bool = False
) -> TextDataset:
    """Read the texts in DATA: the columns that the flags name, else those that the model was trained on."""
    columns = columns_for(options, model)
    for path in options.data:
        _refuse_columns(options, path)
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
        )
        for path in options.data
    ]
    return TextDataset.joined(parts)


def _refuse_columns(options: Options, path: str) -> None:
    """Refuse the names of columns for a file that has none."""
    if path == data.STANDARD_INPUT:
        refuse_for_pipe(options)
        return
    kind = data.text_format(path, options.format)
    if kind in ("annif", "fasttext"):
        options.refuse(("--text", "--labels", "--sep"), f"{path} is in {kind} format, which has no columns")
    elif kind == "lines":
        options.refuse(["--text"], f"{path} has one text per line and no columns")
        if options.labels is None or not data.holds_text(options.labels):
            options.refuse(["--sep"], "no file with names of labels is read")


def refuse_for_pipe(options: Options) -> None:
    """Refuse what does not matter for standard input."""
    options.refuse(_FOR_FILES, "it is for data files, not for standard input")


def columns_for(options: Options, model: Model | None) -> Columns:
    """The columns to read for a model: those that the flags name, else those of its training."""
    known = model.columns_ if isinstance(model, TextClassifier) else Columns()
    return columns_of(options).or_else(known)


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
        return model.encode(options.data)
    if not has_texts(options):
        return read_data(options, n_features=estimator_of(model).n_features_in_).X
    return text_model(model, options).encode(read_texts(options, model, needs_labels=False).texts)


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
        return dataset.X, estimator.encode_labels(labels)
    encoder = text_model(model, options)
    documents = read_texts(options, model)
    return encoder.encode(documents.texts), estimator.encode_labels(documents.labels)


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


def is_a_text(options: Options) -> bool:
    """True if DATA is literal text rather than a path; flags for files are refused then."""
    word = options.data[0]
    if word == "-" or options.format is not None or any(map(_exists, options.data)):
        return False
    if len(options.data) > 1 and not any(Path(path).suffix for path in options.data):
        raise UsageError(f"labelwood: there is no file {word}; put a text in quotes: {' '.join(options.data)!r}")
    is_text = len(options.data) == 1 and (" " in word.strip() or not Path(word).suffix)
    if is_text:
        options.refuse(DATA_FLAGS, f"it is for data files, but there is no file {word!r:.60}, so it is read as a text")
    return is_text


def named_data(options: Options) -> str:
    """DATA as it was given."""
    return " ".join(options.data)


def label_of(model: Model, text: str) -> Hashable:
    """Return the label that a word of the command line means: a name, or else a number."""
    if text not in model.label_names.index and text.lstrip("-").isdigit():
        return int(text)
    return text


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # too long for a path
        return False


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


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(text)
    return names


def _threads(text: str) -> int:
    return -1 if text == "-1" else at_least(1)(text)
