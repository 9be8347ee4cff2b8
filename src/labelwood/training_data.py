"""What a user trains on, read and checked: label names, the label matrix, sizes that fit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from labelwood import labels
from labelwood.deciding import check_lengths
from labelwood.errors import LabelwoodError
from labelwood.frames import column_names
from labelwood.sparse import CSR


def read_labels(Y: Any, label_names: Sequence[Hashable] | None, owner: str) -> tuple[labels.LabelNames, CSR]:
    """The names of the labels and the label matrix of what a user calls Y."""
    if labels.is_matrix(Y):
        matrix = labels.read_matrix(Y, owner=owner)
        label_names = column_names(Y) if label_names is None else label_names
        if label_names is None:
            return labels.LabelNames.columns(matrix.n_cols), matrix
        n_distinct = len(labels.distinct_names([list(label_names)], owner=owner))
        if len(label_names) != matrix.n_cols or n_distinct != matrix.n_cols:
            raise LabelwoodError(
                f"{owner}: label_names must be {matrix.n_cols} distinct names, one for each column of Y; "
                f"got {len(label_names)}, of which {n_distinct} distinct"
            )
        return labels.LabelNames.of(label_names), matrix
    if label_names is not None:
        raise LabelwoodError(f"{owner}: label_names must be left out when the rows of Y already hold names")
    rows = labels.read_rows(Y, owner=owner)
    distinct = labels.distinct_names(rows, owner=owner)
    index = {name: label for label, name in enumerate(distinct)}
    return labels.LabelNames.of(distinct), labels.to_csr(rows, index, len(distinct), owner=owner)


def check_sizes(X: CSR, Y: CSR, owner: str) -> None:
    """Raise unless there are as many rows of labels as of features, and something to learn."""
    check_lengths(X.n_rows, Y.n_rows, owner)
    for count, what, got in (
        (X.n_rows, "row", "0"),
        # the second half is what scikit-learn's users, and its checks, look for
        (X.n_cols, "feature", f"0 feature(s) (shape=({X.n_rows}, 0)) while a minimum of 1 is required."),
        (Y.n_cols, "label", "0"),
    ):
        if count == 0:
            raise LabelwoodError(f"{owner}: at least one {what} is needed to learn from; got {got}")
    if Y.nnz == 0:
        raise LabelwoodError(f"{owner}: at least one row must have a label; Y is empty")
