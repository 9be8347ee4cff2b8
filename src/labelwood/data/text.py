"""The two text formats: their headers, their rows (parsed by the kernel), and what to say of a bad token.

A row is ``l1,l2 f:v f:v``, separated by blanks or tabs. Features may come in any order and are sorted; the
values of a repeated feature are added up, repeated labels count once. Ids are at most 2**31 - 2.

``xmc``: ids from 0. A line that starts with a blank has no labels; a feature without value (``f``) has the
value 1; an empty line is a row without labels and features, but empty lines at the end count only as far as
the header counts them. The first line is a header if it is exactly three whole numbers. A first row of one
label and two features without values looks the same: ``header=False`` says it is one.

``svmlight``: as scikit-learn reads it. Empty lines and what follows ``#`` are skipped, a first token with a
colon means no labels, every feature has a value, label ids are taken as they are. Feature ids start from 0 or
1: unless told by ``zero_based`` it is 1 if no feature is 0. A first line ``# labelwood rows=n features=d
labels=l``, which is a comment to other readers, gives the counts and that ids start from 0.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from labelwood import _core
from labelwood.data.dataset import Dataset
from labelwood.data.files import U8, read_text
from labelwood.errors import FormatError, LabelwoodError
from labelwood.progress import loading
from labelwood.reference.parse import Problem
from labelwood.sparse import CSR, MAX_COLUMNS

_XMC_HEADER = re.compile(rb"(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]*\r?\n")
_SVMLIGHT_HEADER = re.compile(rb"# labelwood rows=(\d+) features=(\d+) labels=(\d+)\r?\n")
_HEADER_BYTES = 200
_ROWS_PER_WRITE = 1 << 15

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
    Problem.missing_value: "the feature {token} has no value; the line may be cut short",
    Problem.not_finite: "the value of {token} is not finite",
    Problem.huge_value: "the value of {token} does not fit float32",
    Problem.huge_sum: "the values of a repeated feature add up to more than float32 holds",
}


@dataclass(frozen=True)
class TextOptions:
    """How to read a text file.

    ``n_features`` and ``n_labels`` win over the header; ``n_names`` is the count of labels if nothing else
    tells it.
    """

    n_threads: int
    n_features: int | None = None
    n_labels: int | None = None
    n_names: int | None = None
    header: bool | None = None
    zero_based: bool | None = None


@dataclass(frozen=True)
class Header:
    """What the first line of a file tells, and its size in bytes; no size if there is no header."""

    size: int = 0
    n_rows: int | None = None
    n_features: int | None = None
    n_labels: int | None = None


def read_rows(path: Path, *, svmlight: bool, options: TextOptions) -> Dataset:
    """A data set from a text file in the svmlight or the XMC dialect."""
    text, complete = read_text(path)
    if len(text) == 0:
        raise FormatError(f"{path}: the file is empty")
    header = read_header(path, text, svmlight, options)
    body, n_empty = without_empty_end(text[header.size :])
    dataset = Reader(path, text, body, header, svmlight, options).read()
    if header.n_rows is not None and not svmlight:
        dataset = with_empty_rows(dataset, min(n_empty, max(0, header.n_rows - dataset.n_rows)))
    _check_row_count(path, text, header, dataset.n_rows, svmlight)
    if not complete:
        warnings.warn(f"{path}: the last line has no newline; the file may be cut short", stacklevel=3)
    return dataset


def write_rows(stream: IO[bytes], dataset: Dataset, *, svmlight: bool, n_threads: int) -> None:
    """Write the header and the rows; values are the shortest decimals that read back to the same float32.

    A row without labels and features is ``0:0`` in svmlight, whose readers skip empty lines.
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
    """The header of a text, if it has one."""
    found = (_SVMLIGHT_HEADER if svmlight else _XMC_HEADER).match(text[:_HEADER_BYTES].tobytes())
    if options.header and found is None:
        raise FormatError(f"{path}, line 1: expected a header of three counts: rows, features, labels")
    if found is None or options.header is False:
        return Header()
    n_rows, n_features, n_labels = (int(count) for count in found.groups())
    for what, count in (("features", n_features), ("labels", n_labels)):
        if count > MAX_COLUMNS:
            raise FormatError(
                f"{path}, line 1: the header counts {count} {what}; at most {MAX_COLUMNS} are supported"
            )
    return Header(found.end(), n_rows, n_features, n_labels)


def without_empty_end(body: U8) -> tuple[U8, int]:
    """The rows up to the last line that is not empty, and how many empty lines were cut off."""
    stop, n_empty = len(body), 0
    while stop > 0:
        width = 2 if stop > 1 and body[stop - 2] == ord("\r") else 1
        if stop > width and body[stop - width - 1] != ord("\n"):
            break
        stop -= width
        n_empty += 1
    return body[:stop], n_empty


def with_empty_rows(dataset: Dataset, count: int) -> Dataset:
    """The rows, and so many empty ones."""

    def longer(matrix: CSR) -> CSR:
        return CSR(np.pad(matrix.indptr, (0, count), mode="edge"), matrix.indices, matrix.data, matrix.n_cols)

    return Dataset(longer(dataset.X), longer(dataset.Y)) if count else dataset


def _check_row_count(path: Path, text: U8, header: Header, n_rows: int, svmlight: bool) -> None:
    if header.n_rows is None:
        if n_rows == 0:
            raise FormatError(f"{path}: the file has no rows")
        return
    hint = "" if svmlight else "; if the first line is not a header, say header=False"
    if n_rows < header.n_rows:
        last = bytes(text).count(b"\n")
        raise FormatError(
            f"{path}, line {last}: the file ends after {n_rows} rows, the header counts {header.n_rows}: "
            f"it may be cut short{hint}"
        )
    if n_rows > header.n_rows:
        lines = enumerate(bytes(text).split(b"\n"), start=1)
        rows = [
            number
            for number, line in lines
            if number > 1 and not (svmlight and not line.split(b"#")[0].strip())
        ]
        raise FormatError(
            f"{path}, line {rows[header.n_rows]}: the file has {n_rows} rows, "
            f"the header counts {header.n_rows}{hint}"
        )


def _first_known(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


@dataclass(frozen=True)
class Reader:
    """Rows of a text file and what is known of them; ``first_line`` is the number of the first line of ``text``."""

    path: Path
    text: U8
    body: U8
    header: Header
    svmlight: bool
    options: TextOptions
    first_line: int = 1

    def read(self) -> Dataset:
        """Parse them."""
        n_features = _first_known(self.options.n_features, self.header.n_features)
        n_labels = _first_known(self.options.n_labels, self.header.n_labels, self.options.n_names)
        zero_based = self.options.zero_based
        if zero_based is None and (not self.svmlight or self.header.n_rows is not None):
            zero_based = True
        first_id = 1 if zero_based is False else 0
        # Until it is known where the ids start, the last feature may be written as n_features.
        slack = 1 if zero_based is None else 0
        parsed = self._parse(first_id, n_features, n_labels, slack)
        x_indptr, x_indices, x_data, y_indptr, y_indices, feature_end, label_end = parsed
        if zero_based is None and feature_end > 0:
            if x_indices.min() > 0:
                x_indices -= 1
                feature_end -= 1
            elif n_features is not None and feature_end > n_features:
                self._parse(0, n_features, n_labels, 0)  # raises, naming the token that the slack let pass
        X = CSR(x_indptr, x_indices, x_data, feature_end if n_features is None else n_features)
        ones = np.ones(len(y_indices), np.float32)
        return Dataset(X, CSR(y_indptr, y_indices, ones, label_end if n_labels is None else n_labels))

    def _parse(
        self, first_id: int, n_features: int | None, n_labels: int | None, slack: int
    ) -> tuple[Any, ...]:
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
