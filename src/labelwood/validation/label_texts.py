"""What is known of labels besides training rows: their names and descriptions, as texts and as vectors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.hybrid import Hybrid, as_layout, beside
from labelwood.label_names import LabelNames, name_problem
from labelwood.sparse import CSR, I64
from labelwood.validation.features import as_features


class LabelTexts(NamedTuple):
    """Texts and the label that each describes; a label may have several."""

    labels: list[Hashable]
    texts: list[str]


class LabelVectors(NamedTuple):
    """Vectors and the label that each describes; a label may have several."""

    labels: list[Hashable]
    vectors: CSR


class LabelRows(NamedTuple):
    """Vectors sorted by label id: those of a label are rows ``ptr[label]`` to ``ptr[label + 1]``."""

    ptr: I64
    vectors: CSR

    @property
    def targets(self) -> CSR:
        """The label of each vector as a label matrix."""
        n_labels = len(self.ptr) - 1
        labels = np.repeat(np.arange(n_labels, dtype=np.int32), np.diff(self.ptr))
        return CSR(np.arange(len(labels) + 1), labels, np.ones(len(labels), np.float32), n_labels)


def read_label_texts(given: Any, *, owner: str) -> LabelTexts:
    """The texts of a mapping from labels to a text or to several texts; empty texts are left out."""
    if not isinstance(given, Mapping):
        raise LabelwoodError(
            f"{owner}: label_texts must map labels to texts, as in {{'pets': 'dogs, cats and other pets'}}; "
            f"got {type(given).__name__}"
        )
    labels: list[Hashable] = []
    texts: list[str] = []
    for label, value in given.items():
        if (problem := name_problem(label)) is not None:
            raise LabelwoodError(f"{owner}: label_texts: {problem}")
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list | tuple) or not all(isinstance(text, str) for text in several):
            raise LabelwoodError(
                f"{owner}: label_texts must be strings or lists of strings; got {value!r} for {label!r}"
            )
        kept = [text for text in dict.fromkeys(several) if text.strip()]
        labels += [label] * len(kept)
        texts += kept
    return LabelTexts(labels, texts)


def describe_labels(
    given: Any, names: LabelNames, Y: CSR, n_features: int, *, owner: str
) -> tuple[LabelNames, CSR, LabelRows]:
    """The label names and the label matrix with the labels that only ``given`` knows, and the vectors by label id.

    ``given`` is a :class:`LabelVectors`, or a matrix with one row for each label in the order of the label ids.
    """
    if isinstance(given, LabelVectors):
        names, ids = _with_new_labels(names, given.labels, owner)
        vectors = given.vectors
    else:
        vectors = as_features(given, owner=owner, n_features=n_features)
        ids = np.arange(vectors.n_rows)
        if vectors.n_rows != len(names):
            raise LabelwoodError(
                f"{owner}: label_vectors must have one row for each of the {len(names)} labels; got {vectors.n_rows}"
            )
    order = np.argsort(ids, kind="stable")
    order = order[(np.diff(vectors.indptr)[order] > 0) | (vectors.width > 0)]
    ptr = np.searchsorted(ids[order], np.arange(len(names) + 1)).astype(np.int64)
    return names, CSR(Y.indptr, Y.indices, Y.data, len(names)), LabelRows(ptr, vectors.take(order))


def stacked(X: CSR, Y: CSR, rows: LabelRows, *, owner: str) -> tuple[CSR, CSR]:
    """The training rows, followed by the vectors of the labels as rows with one label each."""
    if X.resident:
        raise LabelwoodError(
            f"{owner}: label_vectors must be left out for a data set directory, whose rows stay on disk"
        )
    return _below(X, rows.vectors), _below(Y, rows.targets)


def without(Y: CSR, hidden: npt.NDArray[np.bool_]) -> CSR:
    """The label matrix without the entries of some labels."""
    kept = ~hidden[Y.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[Y.indptr]
    return CSR(indptr, Y.indices[kept], Y.data[kept], Y.n_cols)


def _below(upper: CSR, lower: CSR) -> CSR:
    indptr = np.concatenate([upper.indptr, upper.indptr[-1] + lower.indptr[1:]])
    indices = np.concatenate([upper.indices, lower.indices])
    whole = CSR(indptr, indices, np.concatenate([upper.data, lower.data]), upper.n_cols - upper.width)
    if not isinstance(upper, Hybrid):
        return whole
    return beside(whole, np.concatenate([upper.vectors, as_layout(lower, upper.n_sparse, upper.width).dense_part]))


def _with_new_labels(names: LabelNames, labels: list[Hashable], owner: str) -> tuple[LabelNames, npt.NDArray[np.int64]]:
    """The names with those that are new at the end, and the ids of ``labels``."""
    index = dict(names.index)
    new = [label for label in dict.fromkeys(labels) if label not in index]
    if new and names.kind == "ids":
        raise LabelwoodError(
            f"{owner}: label_texts must be for columns of Y, 0 to {len(names) - 1}; got {new[0]!r}. "
            "label_names names the columns."
        )
    if new:
        index |= {label: len(index) + place for place, label in enumerate(new)}
        names = LabelNames.of(index)
    return names, np.array([index[label] for label in labels], np.int64)
