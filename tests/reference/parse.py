"""Twin of rows/parse.hpp, rows/decimal.hpp and rows/format.hpp: text rows to CSR arrays and back.

The grammar of a line, without its newline and an optional carriage return before it::

    xmc:       [labels] { blank+ id [":" number] } blank*       labels = id { "," id }
    svmlight:  blank* [labels] { blank+ id ":" number } blank* [ "#" anything ]

A blank is a space or a tab. In svmlight an empty line is not a row, and a first token with a colon is a
feature.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.data.xmc_svmlight import Problem

LAST_ID = 2**31 - 2


class Rows(NamedTuple):
    """X and Y as CSR arrays, and the largest feature id and label id, each plus 1."""

    x_indptr: npt.NDArray[np.int64]
    x_indices: npt.NDArray[np.int32]
    x_data: npt.NDArray[np.float32]
    y_indptr: npt.NDArray[np.int64]
    y_indices: npt.NDArray[np.int32]
    feature_end: int
    label_end: int


class BadTokenError(Exception):
    """The first token that does not parse: its problem, and where it begins and ends."""

    def __init__(self, problem: Problem, begin: int, end: int) -> None:
        super().__init__(problem, begin, end)
        self.problem, self.begin, self.end = problem, begin, end


def parse_rows(text: bytes, *, svmlight: bool, first_id: int, n_features: int, n_labels: int) -> Rows:
    """Parse text that ends in a newline (or is empty); raises BadTokenError."""
    features: list[dict[int, np.float32]] = []
    labels: list[set[int]] = []
    begin = 0
    for line in text.split(b"\n")[:-1]:
        row = line.removesuffix(b"\r")
        if svmlight:
            row = row.split(b"#")[0]
        tokens = [(begin + m.start(), m.group()) for m in re.finditer(rb"[^ \t]+", row)]
        if tokens or not svmlight:
            has_labels = bool(tokens) and (b":" not in tokens[0][1] if svmlight else tokens[0][0] == begin)
            labels.append(_labels(*tokens[0], n_labels) if has_labels else set())
            start = tokens[0][0] if svmlight else begin
            try:
                features.append(_features(tokens[1 if has_labels else 0 :], svmlight, first_id, n_features))
            except OverflowError:
                raise BadTokenError(Problem.huge_sum, start, begin + len(row)) from None
        begin += len(line) + 1
    return _rows(features, labels)


def _labels(begin: int, token: bytes, n_labels: int) -> set[int]:
    found = set()
    for label in token.split(b","):
        end = begin + len(label)
        if re.fullmatch(rb"-[0-9]+", label):
            raise BadTokenError(Problem.negative_label, begin, end)
        if not re.fullmatch(rb"[0-9]+", label):
            raise BadTokenError(Problem.bad_label, begin, end)
        if int(label) > LAST_ID:
            raise BadTokenError(Problem.huge_label, begin, end)
        if int(label) >= n_labels:
            raise BadTokenError(Problem.label_past_count, begin, end)
        found.add(int(label))
        begin = end + 1
    return found


def _features(tokens: list[tuple[int, bytes]], svmlight: bool, first_id: int, n_features: int) -> dict[int, np.float32]:
    found: dict[int, np.float32] = {}
    for begin, token in tokens:
        end = begin + len(token)
        name, colon, number = token.partition(b":")
        if re.fullmatch(rb"-[0-9]+", name):
            raise BadTokenError(Problem.negative_feature, begin, end)
        if not re.fullmatch(rb"[0-9]+", name):
            raise BadTokenError(Problem.bad_feature, begin, end)
        if not number and (colon or svmlight):
            raise BadTokenError(Problem.missing_value, begin, end)
        value = np.float32(1)
        if colon:
            verdict = parse_decimal(number)
            if isinstance(verdict, Problem):
                raise BadTokenError(verdict, begin, end)
            value = verdict
        feature = int(name) - first_id
        if int(name) > LAST_ID:
            raise BadTokenError(Problem.huge_feature, begin, end)
        if feature < 0:
            raise BadTokenError(Problem.feature_below_first, begin, end)
        if feature >= n_features:
            raise BadTokenError(Problem.feature_past_count, begin, end)
        with np.errstate(over="ignore", invalid="ignore"):
            found[feature] = found[feature] + value if feature in found else value
    if not all(np.isfinite(value) for value in found.values()):
        raise OverflowError
    return found


def parse_decimal(number: bytes) -> np.float32 | Problem:
    """The float32 nearest to a decimal number; ties go to the even one."""
    if re.fullmatch(rb"[+-]?(nan|inf|infinity)", number, re.IGNORECASE):
        return Problem.not_finite
    if not re.fullmatch(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", number):
        return Problem.bad_value
    near = float(number)  # a double, for the size only: rounding it to float32 would round twice
    if abs(near) > 2.0**129:
        return Problem.huge_value
    if abs(near) < 2.0**-160:
        return np.float32(np.copysign(0.0, near))
    exact = abs(Fraction(number.decode()))
    exponent = max(int(np.frexp(abs(near))[1]) - 24, -149)  # of a float32's last bit
    steps = round(exact / Fraction(2) ** exponent)  # Fraction rounds half to even
    if steps * Fraction(2) ** exponent >= Fraction(2) ** 128:
        return Problem.huge_value
    return np.float32(np.copysign(float(steps * Fraction(2) ** exponent), near))


def _rows(features: list[dict[int, np.float32]], labels: list[set[int]]) -> Rows:
    x_indices = [i for row in features for i in sorted(row)]
    y_indices = [i for row in labels for i in sorted(row)]
    return Rows(
        np.cumsum([0, *map(len, features)], dtype=np.int64),
        np.array(x_indices, dtype=np.int32),
        np.array([row[i] for row in features for i in sorted(row)], dtype=np.float32),
        np.cumsum([0, *map(len, labels)], dtype=np.int64),
        np.array(y_indices, dtype=np.int32),
        max(x_indices, default=-1) + 1,
        max(y_indices, default=-1) + 1,
    )


def format_rows(rows: Rows, *, svmlight: bool) -> bytes:
    """The text of the rows. An empty row is written as a blank, in svmlight as an explicit zero."""
    lines = []
    for row in range(len(rows.x_indptr) - 1):
        x = range(rows.x_indptr[row], rows.x_indptr[row + 1])
        y = rows.y_indices[rows.y_indptr[row] : rows.y_indptr[row + 1]]
        nothing = " 0:0" if svmlight else " "
        line = ",".join(map(str, y)) + "".join(f" {rows.x_indices[i]}:{format_float(rows.x_data[i])}" for i in x)
        lines.append((line or nothing) + "\n")
    return "".join(lines).encode()


def format_float(value: np.float32) -> str:
    """The shortest decimal that parses to the same float32, with an exponent only if that is shorter."""
    scientific = np.format_float_scientific(value, unique=True, trim="-", exp_digits=2)
    if abs(value) >= 2.0**24:
        plain = str(int(value))
    else:
        plain = np.format_float_positional(value, unique=True, trim="-")
    return plain if len(plain) <= len(scientific) else scientific
