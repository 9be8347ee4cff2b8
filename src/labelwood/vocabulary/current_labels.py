"""Labels and the vocabulary behind them: which label stands for a label today.

A label is a concept's URI, or a preferred name that only one concept has. A deprecated concept with one replacement
stands for the replacement; one without is left out. Labels that the vocabulary does not know stay as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from labelwood.errors import LabelwoodError, nearest
from labelwood.label_names import LabelNames
from labelwood.packed.base import pointer_to
from labelwood.sparse import CSR
from labelwood.vocabulary.vocabulary import Vocabulary


class CurrentLabels:
    """A function from a label to the label that stands for it today, None if it is left out; answers are kept."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known: dict[Hashable, Hashable | None] = {}

    def __call__(self, label: Hashable) -> Hashable | None:
        """The label that stands for a label."""
        if label not in self._known:
            concept = self._vocabulary.resolve(label)
            current = None if concept is None else self._vocabulary.current(concept)
            self._known[label] = (
                label if concept is None else None if current is None else self._label(label, concept, current)
            )
        return self._known[label]

    def _label(self, label: Hashable, concept: int, current: int) -> Hashable:
        return label if not isinstance(label, str) and concept == current else self._vocabulary.uri(current)


def label_id(names: LabelNames, label: Hashable, *, owner: str) -> int:
    """The id of a label that is given as it is, by the URI of its concept, or by a name that only that concept has."""
    index, vocabulary = names.index, names.vocabulary
    with contextlib.suppress(KeyError, TypeError):
        return index[label]
    concept = None if vocabulary is None or not isinstance(label, str) else vocabulary.resolve(label)
    if vocabulary is None or concept is None:
        advice = nearest(label, index) or ("" if vocabulary is None else nearest(label, vocabulary.names()))
        raise LabelwoodError(f"{owner}: there is no label {label!r}{advice}")
    uri = vocabulary.uri(concept)
    if uri in index:
        return index[uri]
    name = vocabulary.name(concept)
    shown = uri if name is None else f"{name} <{uri}>"
    raise LabelwoodError(f"{owner}: {shown} is in the vocabulary, but no training row has this label")


class Mapped(NamedTuple):
    """The labels of a training after the vocabulary was applied, and how many of them were treated how."""

    names: LabelNames
    targets: CSR
    counts: dict[str, int]


def current_targets(names: LabelNames, Y: CSR, vocabulary: Vocabulary) -> Mapped:
    """Replace deprecated labels, leave out those without a replacement, and name labels by their URIs.

    ``counts`` has the numbers of labels that were ``replaced``, ``left_out``, given by their ``named`` concept, and
    that are ``unknown`` to the vocabulary. Columns without names stay as they are.
    """
    if names.kind == "ids":
        return Mapped(names, Y, {"unknown": len(names)})
    current = CurrentLabels(vocabulary)
    counts = {"replaced": 0, "left_out": 0, "named": 0, "unknown": 0}
    index: dict[Hashable, int] = {}
    column = np.full(max(Y.n_cols, len(names)), -1, np.int64)
    for place, label in enumerate(names.array.tolist()):
        stands_for = current(label)
        if stands_for is None:
            counts["left_out"] += 1
            continue
        if stands_for != label:
            counts["replaced" if vocabulary.find(label) is not None else "named"] += 1
        elif vocabulary.find(label) is None:
            counts["unknown"] += 1
        column[place] = index.setdefault(stands_for, len(index))
    if counts["unknown"] == len(names) > 0 and len(vocabulary):
        raise LabelwoodError(
            f"vocabulary: it has none of the {len(names)} labels; labels are like {names.array[0]!r}, concepts like "
            f"{vocabulary.uri(0)!r} ({vocabulary.name(0)})"
        )
    if len(index) == len(names) and not counts["replaced"] + counts["named"]:
        return Mapped(names, Y, counts)
    return Mapped(LabelNames.of(index), _moved_columns(Y, column, len(index)), counts)


def _moved_columns(Y: CSR, column: np.ndarray[tuple[int], np.dtype[np.int64]], n_cols: int) -> CSR:
    """Y with its entries in other columns, each once; those of column -1 are left out."""
    rows = np.repeat(np.arange(Y.n_rows), np.diff(Y.indptr))
    moved = column[Y.indices]
    keys = np.unique(rows[moved >= 0] * n_cols + moved[moved >= 0]) if n_cols else np.empty(0, np.int64)
    indptr = pointer_to(np.bincount(keys // max(n_cols, 1), minlength=Y.n_rows))
    return CSR(indptr, (keys % max(n_cols, 1)).astype(np.int32), np.ones(len(keys), np.float32), n_cols)


def renames(names: LabelNames, vocabulary: Vocabulary) -> dict[Hashable, str]:
    """The labels to rename because their concept was replaced by one that is not a label yet, with their new names."""
    found: dict[Hashable, str] = {}
    taken: set[str] = set()
    for concept in np.flatnonzero(vocabulary.deprecated).tolist():
        current = vocabulary.current(concept)
        old, new = vocabulary.uri(concept), None if current is None else vocabulary.uri(current)
        if new is not None and old in names.index and new not in names.index and new not in taken:
            found[old] = new
            taken.add(new)
    return found


def moved_ids(names: LabelNames) -> dict[int, int]:
    """The ids of labels whose concept is deprecated, each with the id of its replacement, or -1.

    A replacement that is no label leaves its concept's label in use; :func:`renames` gives that label its new name.
    """
    vocabulary = names.vocabulary
    if vocabulary is None or names.kind == "ids":
        return {}
    found: dict[int, int] = {}
    for concept in np.flatnonzero(vocabulary.deprecated).tolist():
        label = names.index.get(vocabulary.uri(concept))
        if label is None:
            continue
        current = vocabulary.current(concept)
        target = -1 if current is None else names.index.get(vocabulary.uri(current))
        if target is not None:
            found[label] = target
    return found
