"""The two text formats, XMC and svmlight: headers, rows (parsed by the kernel), and messages about bad tokens.

A row is ``l1,l2 f:v f:v``, separated by blanks or tabs. Features may come in any order and are sorted; the values of a
repeated feature are added, a repeated label counts once. Ids are at most 2**31 - 2.

``xmc``: ids start at 0. A line that starts with a blank has no labels; a feature without a value (``f``) has the value
1; an empty line is a row without labels and features. Empty lines at the end of the file are rows only if the header
counts them. The first line is a header if it consists of exactly three whole numbers. A first row with one label and
two features without values looks the same: ``header=False`` says that it is a row.

``svmlight``: the format of scikit-learn. Empty lines are skipped, and so is everything after ``#``. A first token with
a colon means that the row has no labels. Every feature has a value. Label ids are taken as they are. Feature ids start
at 0 or 1: unless ``zero_based`` says so, at 1 if no feature is 0. A first line ``# labelwood rows=n features=d
labels=l``, a comment to other readers, gives the counts, and ids start at 0.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import IO, Any

import numpy as np

from labelwood import _core
from labelwood.data._files import read_pieces, read_text
from labelwood.data.dataset import Dataset
from labelwood.errors import FormatError, LabelwoodError, LabelwoodWarning
from labelwood.progress import loading
from labelwood.sparse import CSR, MAX_COLUMNS, U8

_XMC_HEADER = re.compile(rb"(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]*\r?\n")
_SVMLIGHT_HEADER = re.compile(rb"# labelwood rows=(\d+) features=(\d+) labels=(\d+)\r?\n")
_HEADER_BYTES = 200
_BYTES_SEARCHED = 1 << 16
_ROWS_PER_WRITE = 1 << 15
_BYTES_PER_PART = 1 << 24
_EMPTY_ROWS_PER_PART = 1 << 20


class Problem(IntEnum):
    """What is wrong with a token; the kernel uses the same numbers."""

    bad_label = 1
    negative_label = 2
    huge_label = 3
    label_past_count = 4
    bad_feature = 5
    negative_feature = 6
    huge_feature = 7
    feature_past_count = 8
    feature_below_first = 9
    bad_value = 10
    missing_value = 11
    not_finite = 12
    huge_value = 13
    huge_sum = 14


_MESSAGES = {
    Problem.bad_label: "the label id {token} is not a whole number",
    Problem.negative_label: "the label id {token} is negative",
    Problem.huge_label: f"the label id {{token}} is larger than {MAX_COLUMNS - 1}",
    Problem.label_past_count: "the label id {token} is past the last of {labels} labels",
    Problem.bad_feature: "{token} is not a feature; expected id:value",
    Problem.negative_feature: "the feature id of {token} is negative",
    Problem.huge_feature: f"the feature id of {{token}} is larger than {MAX_COLUMNS - 1}",
    Problem.feature_past_count: "the feature id of {token} is past the last of {features} features",
    Problem.feature_below_first: "the feature id of {token} is 0 in a file whose ids start from 1",
    Problem.bad_value: "the value of {token} is not a number",
    Problem.missing_value: "the feature {token} has no value; the line may be truncated",
    Problem.not_finite: "the value of {token} is not finite",
    Problem.huge_value: "the value of {token} does not fit float32",
    Problem.huge_sum: "the values of a repeated feature add up to more than float32 holds",
}


@dataclass(frozen=True)
class TextOptions:
    """How to read a text file.

    ``n_features`` and ``n_labels`` override the header. ``n_names``, the number of label names, is the number of labels
    if neither gives it. ``max_memory`` is the number of bytes that the file may make its reader need.
    """

    n_threads: int
    n_features: int | None = None
    n_labels: int | None = None
    n_names: int | None = None
    header: bool | None = None
    zero_based: bool | None = None
    max_memory: int | None = None


@dataclass(frozen=True)
class Header:
    """The counts in the first line of a file, and the size of that line in bytes; 0 bytes if there is no header."""

    size: int = 0
    n_rows: int | None = None
    n_features: int | None = None
    n_labels: int | None = None


def read_rows(path: Path, *, svmlight: bool, options: TextOptions) -> Dataset:
    """Read a data set from a text file in the XMC or the svmlight format."""
    text, complete = read_text(path, options.max_memory)
    if len(text) == 0:
        raise FormatError(f"{path}: the file is empty")
    header = read_header(path, text, svmlight, options)
    body, n_empty = without_empty_end(text[header.size :])
    dataset = Reader(path, text, body, header, svmlight, options).read()
    if header.n_rows is not None and not svmlight:
        dataset = with_empty_rows(dataset, min(n_empty, max(0, header.n_rows - dataset.n_rows)))
    _check_row_count(path, text, header, dataset.n_rows, svmlight)
    if not complete:
        _warn_of_last_line(path)
    return dataset


def read_parts(
    path: Path, *, svmlight: bool, options: TextOptions, part_bytes: int = _BYTES_PER_PART
) -> Iterator[Dataset]:
    """Read a text file part by part; memory does not grow with its size.

    An svmlight file that does not say where its feature ids start is read twice.
    """
    if svmlight and options.zero_based is None:
        options = replace(options, zero_based=_ids_start_at_zero(path, options))
    held, header, line, n_rows, n_empty = b"", None, 1, 0, 0
    for more in read_pieces(path, part_bytes, options.max_memory):
        held += more
        if header is None:
            header = read_header(path, _as_array(held), svmlight, options)
            options = _with_counts(options, header)
            held, line = held[header.size :], line + (header.size > 0)
        end = held.rfind(b"\n") + 1
        body, n_more = without_empty_end(_as_array(held[:end]))
        held = held[end:]
        if len(body):  # the empty lines before it are not the end of the file
            yield from _empty_parts(0 if svmlight else n_empty, options)
            n_rows, line, n_empty = n_rows + (0 if svmlight else n_empty), line + n_empty, 0
            part = Reader(path, body, body, Header(), svmlight, options, line).read()
            n_rows, line = n_rows + part.n_rows, line + int((body == ord("\n")).sum())
            yield part
        n_empty += n_more
    if header is None:
        raise FormatError(f"{path}: the file is empty")
    complete = not held
    if held:
        yield from _empty_parts(0 if svmlight else n_empty, options)
        n_rows, line, n_empty = n_rows + (0 if svmlight else n_empty), line + n_empty, 0
        body = _as_array(held + b"\n")
        part = Reader(path, body, body, Header(), svmlight, options, line).read()
        n_rows += part.n_rows
        yield part
    if header.n_rows is not None and not svmlight:
        n_empty_rows = min(n_empty, max(0, header.n_rows - n_rows))
        n_rows += n_empty_rows
        yield from _empty_parts(n_empty_rows, options)
    if header.n_rows is None and n_rows == 0:
        raise FormatError(f"{path}: the file has no rows")
    if header.n_rows not in (None, n_rows):
        raise FormatError(f"{path}: the file has {n_rows} rows, the header counts {header.n_rows}: it may be truncated")
    if not complete:
        _warn_of_last_line(path)


def write_rows(stream: IO[bytes], dataset: Dataset, *, svmlight: bool, n_threads: int) -> None:
    """Write the header and the rows; a value is the shortest decimal number that reads back to the same float32.

    In svmlight, a row without labels and features is written as ``0:0``, because readers skip empty lines.
    """
    X, Y = dataset.X, dataset.Y
    if svmlight:
        header = f"# labelwood rows={X.n_rows} features={X.n_cols} labels={Y.n_cols}\n"
    else:
        header = f"{X.n_rows} {X.n_cols} {Y.n_cols}\n"
    stream.write(header.encode())
    for start in range(0, X.n_rows, _ROWS_PER_WRITE):
        stop = min(X.n_rows, start + _ROWS_PER_WRITE)
        x, y = X.rows(start, stop), Y.rows(start, stop)
        rows = _core.format_rows(x, y, svmlight=svmlight, n_threads=n_threads)
        stream.write(rows.data)


def read_header(path: Path, text: U8, svmlight: bool, options: TextOptions) -> Header:
    """Read the header of a text, if it has one."""
    found = (_SVMLIGHT_HEADER if svmlight else _XMC_HEADER).match(text[:_HEADER_BYTES].tobytes())
    if options.header and found is None:
        raise FormatError(f"{path}, line 1: expected a header of three counts: rows, features, labels")
    if found is None or options.header is False:
        return Header()
    n_rows, n_features, n_labels = (int(count) for count in found.groups())
    for what, count in (("features", n_features), ("labels", n_labels)):
        if count > MAX_COLUMNS:
            raise FormatError(f"{path}, line 1: the header counts {count} {what}; at most {MAX_COLUMNS} are supported")
    return Header(found.end(), n_rows, n_features, n_labels)


def without_empty_end(body: U8) -> tuple[U8, int]:
    """Return the text up to its last line that is not empty, and the number of empty lines behind it."""
    stop, n_empty = len(body), 0
    while stop > 0:
        start = max(0, stop - _BYTES_SEARCHED)
        before = b"\n" if start == 0 else body[start - 1 : start].tobytes()
        empty = _empty_end(before + body[start:stop].tobytes())
        if not empty:
            break
        stop -= len(empty)
        n_empty += empty.count(b"\n")
    return body[:stop], n_empty


def _empty_end(text: bytes) -> bytes:
    """The empty lines at the end of a text that ends in a newline; its first byte is only a context."""
    ends = text[len(text.rstrip(b"\r\n")) :]
    is_line_start = len(ends) == len(text) and text[:1] == b"\n"
    first = 1 if is_line_start else ends.find(b"\n", 1 if len(ends) == len(text) else 0) + 1
    not_empty = ends.rfind(b"\r\r", first)  # a line that consists of a carriage return
    return ends[first if not_empty < 0 else ends.find(b"\n", not_empty) + 1 :]


def with_empty_rows(dataset: Dataset, count: int) -> Dataset:
    """Append ``count`` rows without labels and features."""

    def longer(matrix: CSR) -> CSR:
        return CSR(np.pad(matrix.indptr, (0, count), mode="edge"), matrix.indices, matrix.data, matrix.n_cols)

    return Dataset(longer(dataset.X), longer(dataset.Y)) if count else dataset


def _check_row_count(path: Path, text: U8, header: Header, n_rows: int, svmlight: bool) -> None:
    if header.n_rows is None:
        if n_rows == 0:
            raise FormatError(f"{path}: the file has no rows")
        return
    hint = "" if svmlight else "; a file without a header needs header=False in Python"
    if n_rows < header.n_rows:
        last = bytes(text).count(b"\n")
        raise FormatError(
            f"{path}, line {last}: the file ends after {n_rows} rows, the header counts {header.n_rows}: "
            f"it may be truncated{hint}"
        )
    if n_rows > header.n_rows:
        lines = enumerate(bytes(text).split(b"\n"), start=1)
        rows = [number for number, line in lines if number > 1 and not (svmlight and not line.split(b"#")[0].strip())]
        raise FormatError(
            f"{path}, line {rows[header.n_rows]}: the file has {n_rows} rows, the header counts {header.n_rows}{hint}"
        )


def _warn_of_last_line(path: Path) -> None:
    warnings.warn(f"{path}: the last line has no newline; the file may be truncated", LabelwoodWarning, stacklevel=4)


def _with_counts(options: TextOptions, header: Header) -> TextOptions:
    """Fill in the counts of the header that the options leave open."""
    return replace(
        options,
        n_features=_first_known(options.n_features, header.n_features),
        n_labels=_first_known(options.n_labels, header.n_labels, options.n_names),
    )


def _first_known(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _ids_start_at_zero(path: Path, options: TextOptions) -> bool:
    """Tell where the feature ids of an svmlight file start: by its header, else by the smallest id of the file."""
    start = next(read_pieces(path, _BYTES_PER_PART), b"")
    if start and read_header(path, _as_array(start), True, options).n_rows is not None:
        return True
    guess = replace(options, n_features=None, zero_based=True)
    parts = read_parts(path, svmlight=True, options=guess)
    return min((int(part.X.indices.min()) for part in parts if part.X.nnz), default=0) == 0


def _as_array(text: bytes) -> U8:
    return np.frombuffer(text, np.uint8)


def _empty_parts(count: int, options: TextOptions) -> Iterator[Dataset]:
    """Yield ``count`` rows without labels and features, in parts."""
    for start in range(0, count, _EMPTY_ROWS_PER_PART):
        yield with_empty_rows(_no_rows(options), min(_EMPTY_ROWS_PER_PART, count - start))


def _no_rows(options: TextOptions) -> Dataset:
    def empty(n_cols: int | None) -> CSR:
        return CSR(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), n_cols or 0)

    return Dataset(empty(options.n_features), empty(options.n_labels))


@dataclass(frozen=True)
class Reader:
    """A parser for the rows ``body`` of a text file; ``first_line`` is the line number at which ``text`` starts."""

    path: Path
    text: U8
    body: U8
    header: Header
    svmlight: bool
    options: TextOptions
    first_line: int = 1

    def read(self) -> Dataset:
        """Parse the rows."""
        options = _with_counts(self.options, self.header)
        n_features, n_labels, zero_based = options.n_features, options.n_labels, options.zero_based
        if zero_based is None and (not self.svmlight or self.header.n_rows is not None):
            zero_based = True
        first_id = 1 if zero_based is False else 0
        # As long as the first id is unknown, n_features itself may be the id of the last feature.
        slack = 1 if zero_based is None else 0
        parsed = self._parse(first_id, n_features, n_labels, slack)
        x_indptr, x_indices, x_data, y_indptr, y_indices, feature_end, label_end = parsed
        if zero_based is None and feature_end > 0:
            if x_indices.min() > 0:
                x_indices -= 1
                feature_end -= 1
            elif n_features is not None and feature_end > n_features:
                self._parse(0, n_features, n_labels, 0)  # raises, and names the token that the slack allowed
        X = CSR(x_indptr, x_indices, x_data, feature_end if n_features is None else n_features)
        ones = np.ones(len(y_indices), np.float32)
        return Dataset(X, CSR(y_indptr, y_indices, ones, label_end if n_labels is None else n_labels))

    def _parse(self, first_id: int, n_features: int | None, n_labels: int | None, slack: int) -> tuple[Any, ...]:
        with loading(f"parse {self.path.name}", len(self.body)) as progress:
            options = {
                "svmlight": self.svmlight,
                "first_id": first_id,
                "n_features": MAX_COLUMNS if n_features is None else n_features + slack,
                "n_labels": MAX_COLUMNS if n_labels is None else n_labels,
            }
            parsed = _core.parse_rows(self.body, options, self.options.n_threads, progress)
        if len(parsed) == 3:
            raise self._error(Problem(parsed[0]), parsed[1], parsed[2], n_features, n_labels)
        return parsed

    def _error(
        self, problem: Problem, begin: int, end: int, n_features: int | None, n_labels: int | None
    ) -> LabelwoodError:
        content = bytes(self.text[: self.header.size + end])
        line = content.count(b"\n") + self.first_line
        token = content[self.header.size + begin :]
        if 0 in token[:4096] or 0 in self.text[:4096]:
            return FormatError(f"{self.path}, line {line}: a NUL byte; this is a binary file, not text")
        shown = repr(token[:40].decode("utf-8", "replace")) + ("..." if len(token) > 40 else "")
        message = _MESSAGES[problem].format(token=shown, features=n_features, labels=n_labels)
        if problem is Problem.bad_label and b":" in token and not self.svmlight:
            message += "; a row without labels starts with a blank"
        return FormatError(f"{self.path}, line {line}: {message}")
