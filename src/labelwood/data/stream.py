"""Text files of any size, a part of the rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelwood.data.dataset import Dataset
from labelwood.data.directory import DirectoryWriter
from labelwood.data.files import U8, read_pieces
from labelwood.data.text import Header, Reader, TextOptions, read_header, with_empty_rows, without_empty_end
from labelwood.errors import FormatError
from labelwood.sparse import CSR

_PIECE = 1 << 24  # bytes of text that are read at a time


def stream_to_directory(
    source: Path, target: Path, *, svmlight: bool, options: TextOptions, names: tuple[str, ...] | None
) -> None:
    """Turn a text file into a data set directory; memory does not grow with its size."""
    if svmlight:
        options = _with_first_id(source, options)
    with DirectoryWriter(target) as writer:
        for part in read_parts(source, svmlight=svmlight, options=options):
            writer.add(part)
        if names is not None and len(names) != writer.n_labels:
            raise FormatError(
                f"{source}: has {writer.n_labels} labels, but there are {len(names)} label names"
            )
        writer.finish(names)


def read_parts(path: Path, *, svmlight: bool, options: TextOptions, piece: int = _PIECE) -> Iterator[Dataset]:
    """The rows of a text file in parts; where svmlight ids start must be known."""
    held, header, line, n_rows = b"", None, 1, 0
    for more in read_pieces(path, piece):
        held += more
        if header is None:
            header = read_header(path, _bytes(held), svmlight, options)
            options = _with_counts(options, header)
            held, line = held[header.size :], line + (header.size > 0)
        body, _ = without_empty_end(_bytes(held[: held.rfind(b"\n") + 1]))
        if len(body):
            part = Reader(path, body, body, Header(), svmlight, options, line).read()
            n_rows, line = n_rows + part.n_rows, line + int((body == ord("\n")).sum())
            held = held[len(body) :]
            yield part
    if header is None:
        raise FormatError(f"{path}: the file is empty")
    complete = held.endswith(b"\n") or not held
    body, n_empty = without_empty_end(_bytes(held if complete else held + b"\n"))
    if len(body):
        part = Reader(path, body, body, Header(), svmlight, options, line).read()
        n_rows += part.n_rows
        yield part
    counted = header.n_rows
    lacking = 0 if counted is None or svmlight else min(n_empty, max(0, counted - n_rows))
    if lacking:
        yield with_empty_rows(_nothing(options), lacking)
    if n_rows + lacking != (n_rows if counted is None else counted) or n_rows + lacking == 0:
        told = "the file has no rows" if counted is None else f"the header counts {counted} rows"
        raise FormatError(f"{path}: {told}; it has {n_rows + lacking}, it may be cut short")
    if not complete:
        warnings.warn(f"{path}: the last line has no newline; the file may be cut short", stacklevel=3)


def _bytes(text: bytes) -> U8:
    return np.frombuffer(text, np.uint8)


def _with_counts(options: TextOptions, header: Header) -> TextOptions:
    """The options with what the header tells and they do not."""
    n_features = header.n_features if options.n_features is None else options.n_features
    known = (options.n_labels, header.n_labels, options.n_names)
    n_labels = next((count for count in known if count is not None), None)
    zero_based = True if options.zero_based is None else options.zero_based
    return replace(options, n_features=n_features, n_labels=n_labels, zero_based=zero_based)


def _with_first_id(path: Path, options: TextOptions) -> TextOptions:
    """Options that say where the feature ids of an svmlight file start, which only all of it may tell."""
    if options.zero_based is not None:
        return options
    start = next(read_pieces(path, _PIECE), b"")
    if start and read_header(path, _bytes(start), True, options).n_rows is not None:
        return replace(options, zero_based=True)
    loose = replace(options, n_features=None, zero_based=True)
    parts = read_parts(path, svmlight=True, options=loose)
    lowest = min((int(part.X.indices.min()) for part in parts if part.X.nnz), default=0)
    return replace(options, zero_based=lowest == 0)


def _nothing(options: TextOptions) -> Dataset:
    def empty(n_cols: int | None) -> CSR:
        return CSR(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), n_cols or 0)

    return Dataset(empty(options.n_features), empty(options.n_labels))
