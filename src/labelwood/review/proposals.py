"""Suggestions for a document: of a model, or of the names of the labels if there is no model yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.review.documents import parts_of
from labelwood.review.evidence import Evidence, by_model, by_name, standing
from labelwood.review.labels import KnownLabels
from labelwood.run_context import RunContext
from labelwood.scoring.doubt import doubt
from labelwood.scoring.second_look import LabelTables
from labelwood.serve.service import suggest
from labelwood.sparse import CSR, F32
from labelwood.text import Document, TfidfEncoder

_FEATURES = 200  # words of a text that an explanation names


class Proposed(NamedTuple):
    """A suggested label and its score; None if it has none."""

    label: str
    score: float | None


class Proposals(Protocol):
    """Suggests labels, says why, and says how much it doubts."""

    def suggest(self, text: Document) -> list[Proposed]:
        """The suggestions for a text, best first."""
        ...

    def why(self, text: Document, label: str, names: Sequence[str]) -> Evidence:
        """Why a label with these names fits a text."""
        ...

    def doubts(self, texts: Sequence[Document]) -> F32:
        """The doubt about each text; see :mod:`labelwood.scoring.doubt`."""
        ...


class ModelProposals:
    """The k best labels of a model of texts."""

    def __init__(self, model: Model, k: int) -> None:
        if model.takes != "text":
            raise LabelwoodError("review: the model was trained on vectors; people read texts: train a model on texts")
        self._model, self._k = model, k

    def suggest(self, text: Document) -> list[Proposed]:
        """The suggestions for a text, best first."""
        (found,) = suggest(estimator_of(self._model), self._model.encode([text]), k=self._k)
        return [Proposed(str(one.label), one.score) for one in found]

    def why(self, text: Document, label: str, names: Sequence[str]) -> Evidence:
        """Why the model suggests a label; by its name if the model does not suggest it."""
        place = next((n for n, one in enumerate(self.suggest(text), start=1) if one.label == label), None)
        if place is None:
            marks, sentences = by_name(text, names)
            return Evidence(marks, ["The model does not suggest it.", *sentences])
        explanation = self._model.explain([text], place, n_features=_FEATURES)[0]
        return by_model(text, label, explanation, self._model.encode, place)

    def doubts(self, texts: Sequence[Document]) -> F32:
        """The doubt about each text."""
        estimator = estimator_of(self._model)
        return doubt(estimator.topk_ids(self._model.encode(texts), min(self._k, estimator.n_labels_)))


class NameProposals:
    """At most 20 labels whose names stand in the text, found as :class:`~labelwood.Ranker` finds them.

    Before them come the labels that people have made, if all their words stand in the text.
    """

    def __init__(
        self, labels: KnownLabels, texts: Sequence[Document], k: int, made: Callable[[], Sequence[str]] = list
    ) -> None:
        self._labels, self._k, self._made = labels, k, made
        names, owners, _ = labels.names()
        order = np.argsort(owners, kind="stable")
        self._encoder = TfidfEncoder()
        self._has_names = bool(names)
        if not self._has_names:
            return
        encoded = self._encoder.fit_encode([*(names[place] for place in order.tolist()), *map(_plain, texts)])
        vectors = encoded.rows(0, len(names)).unit_rows()
        ptr = np.searchsorted(owners[order], np.arange(len(labels) + 1)).astype(np.int64)
        alone = CSR(np.zeros(len(labels) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), len(labels))
        no_counts, no_rows = np.zeros(len(labels), np.float32), np.zeros(len(names), np.float32)
        self._tables = LabelTables(no_counts, alone, ptr, vectors, no_rows)

    def suggest(self, text: Document) -> list[Proposed]:
        """The suggestions for a text, best first."""
        made = [Proposed(label, None) for label in standing(text, self._made())]
        return [*made, *self._by_name(text)][: self._k]

    def _by_name(self, text: Document) -> list[Proposed]:
        if not self._has_names:
            return []
        top = self._tables.matches(self._encoder.encode([_plain(text)]), self._k, RunContext())
        pairs = zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True)
        return [Proposed(self._labels.labels[label], score) for label, score in pairs if label >= 0]

    def why(self, text: Document, label: str, names: Sequence[str]) -> Evidence:
        """The words of the label's name in the text."""
        return by_name(text, names)

    def doubts(self, texts: Sequence[Document]) -> F32:
        """The doubt about each text."""
        if not self._has_names:
            return np.zeros(len(texts), np.float32)
        return doubt(self._tables.matches(self._encoder.encode(list(map(_plain, texts))), self._k, RunContext()))


def _plain(text: Document) -> str:
    return "\n".join(content for _, content in parts_of(text))
