"""Read texts and vectors to predict from a pipe, batch by batch: a batch is the lines that have arrived.

A program that writes a line and waits gets its answer; a program that writes many lines at once is served in large
batches. What cannot be read line by line is read whole, as one batch: CSV, TSV, a JSON array, and svmlight without
the header that says where its ids start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np

from labelwood.data import texts
from labelwood.data._files import Format
from labelwood.data.text_tables import Columns, Wanted
from labelwood.data.texts import STANDARD_INPUT_NAME, TextDataset, TextFormat
from labelwood.data.xmc_svmlight import Header, Reader, TextOptions, read_header
from labelwood.errors import FormatError
from labelwood.sparse import CSR

_PIECE = 1 << 20  # bytes read at a time, at most


class Pipe(Protocol):
    """A binary stream, such as ``sys.stdin.buffer``."""

    def read1(self, size: int, /) -> bytes:
        """Return the bytes that have arrived, at most ``size``; wait if there are none; b"" at the end."""


def text_batches(
    pipe: Pipe, *, format: TextFormat | None = None, columns: Columns | None = None, keep_table: bool = False
) -> Iterator[TextDataset]:
    """Yield texts without labels as they arrive; without ``format``, the first line decides."""
    where, named = STANDARD_INPUT_NAME, columns or Columns()
    if format == "parquet":
        raise FormatError(f"{where}: Parquet cannot be read from a pipe; pass a file")
    wanted = Wanted(named.text, named.labels, named.sep, needs_labels=False, keep_table=keep_table, fields=named.fields)
    blocks = _blocks(pipe)
    first = next(blocks, None)
    if first is None:
        raise FormatError(f"{where}: contains no texts")
    line = texts.decoded(first.partition(b"\n")[0], where)
    kind = texts.recognized_format(line, format, is_named=format is not None)
    if kind in ("csv", "tsv") or (kind == "jsonl" and line.lstrip().startswith("[")):
        content = texts.decoded(first + b"".join(blocks), where)
        found = texts.read_content(content, kind, where, wanted, is_named=True)
        yield TextDataset(*found)
        return
    number = 1
    for block in chain([first], blocks):
        lines = texts.decoded(block, where, first_line=number).removesuffix("\n").split("\n")
        if kind == "jsonl" and wanted.text is None:
            wanted = _recognized(lines, wanted, number)
        yield TextDataset(*texts.read_lines(lines, kind, where, wanted, first_line=number))
        number += len(lines)


def vector_batches(pipe: Pipe, *, format: Format | None, n_features: int) -> Iterator[CSR]:
    """Yield the features of rows as they arrive, in the format ``xmc`` (the default) or ``svmlight``."""
    where, svmlight = Path(STANDARD_INPUT_NAME), format == "svmlight"
    if format not in (None, "xmc", "svmlight"):
        raise FormatError(f"{where}: vectors from a pipe are xmc or svmlight; got the format {format}")
    options = TextOptions(n_threads=1, n_features=n_features)
    blocks = _blocks(pipe)
    first = next(blocks, b"")
    header = read_header(where, np.frombuffer(first, np.uint8), svmlight, options)
    rest: Iterable[bytes] = chain([first[header.size :]], blocks)
    if svmlight and header.n_rows is None:
        rest = [b"".join(rest)]
    else:
        options = replace(options, zero_based=True)
    number = 1 + (header.size > 0)
    for block in rest:
        body = np.frombuffer(block, np.uint8)
        if len(body):
            yield Reader(where, body, body, Header(), svmlight, options, number).read().X
        number += block.count(b"\n")


def _blocks(pipe: Pipe) -> Iterator[bytes]:
    """Yield the complete lines that have arrived, as one block that ends in a newline; the last line gets one."""
    held = b""
    while piece := pipe.read1(_PIECE):
        lines, newline, last = piece.rpartition(b"\n")
        if newline:
            yield held + lines + newline
            held = last
        else:
            held += piece
    if held:
        yield held + b"\n"


def _recognized(lines: list[str], wanted: Wanted, number: int) -> Wanted:
    """Recognize the columns of the text in the first JSON record, so that all batches read the same columns."""
    for place, line in enumerate(lines, start=number):
        if line.strip():
            whole = replace(wanted, keep_table=True)
            record = texts.read_lines([line], "jsonl", STANDARD_INPUT_NAME, whole, first_line=place)
            return replace(wanted, text=wanted.columns(list(record.table or ()), STANDARD_INPUT_NAME)[0])
    return wanted
