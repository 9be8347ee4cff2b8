"""Load, save and convert data sets in any of the four formats."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from labelwood.data._files import COMPRESSIONS, Format, check_claim, check_exists, guess_format, writing
from labelwood.data.dataset import Dataset
from labelwood.data.label_file import NAMES_FILE, read_names, write_names_beside
from labelwood.data.mapped_directory import read_directory, write_directory
from labelwood.data.npz import read_npz, write_npz
from labelwood.data.xmc_svmlight import TextOptions, read_parts, read_rows, write_rows
from labelwood.errors import FormatError, LabelwoodError
from labelwood.run_context import available_cores
from labelwood.sparse import CSR, MAX_COLUMNS

_BYTES_PER_LABEL = 8  # its count in training, the least that a model holds of a label

PathLike = str | os.PathLike[str]


def load(
    path: PathLike,
    *,
    format: Format | None = None,
    n_threads: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    label_names: PathLike | Literal[False] | None = None,
    header: bool | None = None,
    zero_based: bool | None = None,
    max_memory: int | None = None,
) -> Dataset:
    """Read a data set; without ``format``, the suffix of the file decides.

    ``n_features`` and ``n_labels`` override the counts of the header. Without a header, the counts are inferred from
    the largest ids: give both for a test set without a header. Label names come from the archive, from ``label_names``
    (a file with one name per line), or from ``labels.txt`` in the same directory; False ignores that file. ``header``
    says whether a text file has a header, and ``zero_based`` whether svmlight ids start at 0, for files in which this
    is ambiguous. The result does not depend on ``n_threads`` (default: all cores).

    A file that decompresses to more than ``max_memory`` bytes, or whose labels need more, is refused; by default, more
    than a gigabyte and than 100 times its size.

    Raises FormatError with the file, the line and the token if the file is malformed.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 4 3\\n0,2 1:0.5 3:1\\n 0:2\\n")
    >>> dataset = load(path)
    >>> dataset.X.n_rows, dataset.X.n_cols, dataset.Y.indices.tolist()
    (2, 4, [0, 2])
    """
    path = Path(path)
    for name, count in (("n_features", n_features), ("n_labels", n_labels)):
        if count is not None and not 0 <= count <= MAX_COLUMNS:
            raise LabelwoodError(f"load: {name} must be between 0 and {MAX_COLUMNS}; got {count}")
    check_exists(path)
    kind = guess_format(path, format)
    if kind == "lw" and label_names is None:
        return _in_proportion(path, _with_counts(path, read_directory(path), n_features, n_labels), max_memory)
    names_path = _names_path(path, label_names)
    names = None if names_path is None else read_names(names_path, max_memory)
    if kind in ("npz", "lw"):
        stored = read_npz(path, max_memory) if kind == "npz" else read_directory(path)
        dataset = _in_proportion(path, _with_counts(path, stored, n_features, n_labels), max_memory)
        if dataset.label_names is not None and label_names is None:
            return dataset
    else:
        options = _text_options(n_threads, n_features, n_labels, names, header, zero_based, max_memory)
        dataset = _in_proportion(path, read_rows(path, svmlight=kind == "svmlight", options=options), max_memory)
    _check_names(names_path, names, path, dataset)
    return Dataset(dataset.X, dataset.Y, names)


def save(path: PathLike, dataset: Dataset, *, format: Format | None = None, n_threads: int | None = None) -> None:
    """Write a data set; without ``format``, the suffix of the file decides.

    Text formats write the label names to ``labels.txt`` in the same directory. The write is atomic: a reader finds the
    old file or the new one. The bytes depend only on the data, and loading restores every value bit for bit.
    """
    path = Path(path)
    kind = guess_format(path, format)
    dataset.check()
    if kind == "lw":
        write_directory(path, [dataset], dataset.label_names)
        return
    if path.is_dir():
        raise LabelwoodError(f"{path}: is a directory, not a data file")
    if kind == "npz":
        if path.suffix.lower() in COMPRESSIONS:
            raise LabelwoodError(f"{path}: an npz archive must not be compressed again")
        write_npz(path, dataset)
        return
    if dataset.label_names is not None:
        write_names_beside(path, dataset.label_names)
    with writing(path) as stream:
        write_rows(stream, dataset, svmlight=kind == "svmlight", n_threads=_threads(n_threads))


def save_parts(path: PathLike, parts: Iterable[Dataset]) -> Dataset:
    """Write the rows of all parts as one data set, and return it; the suffix of the file decides about the format.

    A data set directory (``.lw``) is written part by part, so that memory does not grow with its size.
    """
    if guess_format(Path(path), None) == "lw":
        write_directory(Path(path), parts)
        return read_directory(Path(path))
    dataset = Dataset.joined(list(parts))
    save(path, dataset)
    return dataset


def convert(
    source: PathLike,
    target: PathLike,
    *,
    source_format: Format | None = None,
    target_format: Format | None = None,
    n_threads: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    label_names: PathLike | Literal[False] | None = None,
    header: bool | None = None,
    zero_based: bool | None = None,
    max_memory: int | None = None,
) -> Dataset:
    """Load a file, save it in another format, and return the data set; for the options see :func:`load`.

    A text file is converted to a data set directory (``.lw``) part by part, so that memory does not grow with its size.
    """
    kind = guess_format(Path(target), target_format)  # fails before the long read
    if kind == "lw" and _is_text(source, source_format):
        source, target = Path(source), Path(target)
        names_path = _names_path(source, label_names)
        names = None if names_path is None else read_names(names_path, max_memory)
        options = _text_options(n_threads, n_features, n_labels, names, header, zero_based, max_memory)
        svmlight = guess_format(source, source_format) == "svmlight"
        parts = read_parts(source, svmlight=svmlight, options=options)
        write_directory(target, _with_checked_names(names_path, names, source, parts), names)
        return read_directory(target)
    dataset = load(
        source,
        format=source_format,
        n_threads=n_threads,
        n_features=n_features,
        n_labels=n_labels,
        label_names=label_names,
        header=header,
        zero_based=zero_based,
        max_memory=max_memory,
    )
    save(target, dataset, format=target_format, n_threads=n_threads)
    return dataset


def _text_options(
    n_threads: int | None,
    n_features: int | None,
    n_labels: int | None,
    names: tuple[str, ...] | None,
    header: bool | None,
    zero_based: bool | None,
    max_memory: int | None,
) -> TextOptions:
    return TextOptions(
        n_threads=_threads(n_threads),
        n_features=n_features,
        n_labels=n_labels,
        n_names=None if names is None else len(names),
        header=header,
        zero_based=zero_based,
        max_memory=max_memory,
    )


def _in_proportion(path: Path, dataset: Dataset, max_memory: int | None) -> Dataset:
    """The data set, if what every user of it holds per label is in proportion to the file."""
    check_claim(path, f"{dataset.Y.n_cols} labels", dataset.Y.n_cols * _BYTES_PER_LABEL, max_memory)
    return dataset


def _is_text(path: PathLike, format: Format | None) -> bool:
    """True if a data file is text, which can be read part by part."""
    return guess_format(Path(path), format) in ("xmc", "svmlight")


def _threads(n_threads: int | None) -> int:
    if n_threads is None:
        return available_cores()
    if n_threads < 1:
        raise LabelwoodError(f"data: n_threads must be at least 1; got {n_threads}")
    return n_threads


def _check_names(names_path: Path | None, names: tuple[str, ...] | None, path: Path, dataset: Dataset) -> None:
    if names is not None and len(names) != dataset.Y.n_cols:
        raise FormatError(
            f"{names_path}: holds {len(names)} label names, but {path} has {dataset.Y.n_cols} labels; "
            "label_names=False loads the data without names"
        )


def _with_checked_names(
    names_path: Path | None, names: tuple[str, ...] | None, path: Path, parts: Iterable[Dataset]
) -> Iterator[Dataset]:
    for part in parts:
        _check_names(names_path, names, path, part)
        yield part


def _names_path(path: Path, given: PathLike | Literal[False] | None) -> Path | None:
    if given is False:
        return None
    if given is not None:
        return Path(given)
    beside = path.with_name(NAMES_FILE)
    return beside if beside != path and beside.is_file() else None


def _with_counts(path: Path, dataset: Dataset, n_features: int | None, n_labels: int | None) -> Dataset:
    def widened(matrix: CSR, what: str, count: int | None) -> CSR:
        if count is None or count == matrix.n_cols:
            return matrix
        used = int(matrix.indices.max()) + 1 if matrix.nnz else 0
        if used > count:
            raise FormatError(f"{path}: the {what} id {used - 1} is past the last of {count} {what}s")
        return replace(matrix, n_cols=count)

    X, Y = widened(dataset.X, "feature", n_features), widened(dataset.Y, "label", n_labels)
    return Dataset(X, Y, dataset.label_names if Y.n_cols == dataset.Y.n_cols else None)
