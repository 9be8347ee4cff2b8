"""What the routes of the review page do, without HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from labelwood.errors import LabelwoodError
from labelwood.review.documents import Documents, parts_of
from labelwood.review.evidence import Mark
from labelwood.review.export import Format, as_text, exported
from labelwood.review.labels import KnownLabels, ShownLabel
from labelwood.review.made_labels import MadeLabels
from labelwood.review.messages import (
    DecideRequest,
    Facts,
    Found,
    Label,
    Opened,
    OpenRequest,
    Part,
    State,
    Undone,
    UndoRequest,
    Why,
)
from labelwood.review.progress import progress_of
from labelwood.review.proposals import Proposals, Proposed
from labelwood.review.queue import Order, Queue
from labelwood.review.sitting import Reviewed, Sitting
from labelwood.text import Document

_REMEMBERED = 1000  # documents whose suggestions are kept


@dataclass
class Desk:
    """Documents, labels, suggestions and decisions of one review."""

    title: str
    documents: Documents
    labels: KnownLabels
    made: MadeLabels
    proposals: Proposals
    sitting: Sitting
    queue: Queue
    order: Order = "order"
    language: str = ""
    has_model: bool = True

    def __post_init__(self) -> None:
        # A document keeps the suggestions that were shown first, whatever labels people make meanwhile.
        self._suggested = lru_cache(_REMEMBERED)(self._suggest)

    def facts(self) -> Facts:
        """Describe the review."""
        return Facts(
            title=self.title,
            documents=len(self.documents),
            labels=len(self.labels) + len(self.made.all()),
            has_model=self.has_model,
            order=self.order,
            languages=self.labels.languages,
            language=self.language or next(iter(self.labels.languages), ""),
            new_labels=not self.labels.is_closed,
            people=self.queue.people(),
            progress=progress_of(len(self.documents), (found for _, found in self.sitting.done())),
        )

    def open(self, request: OpenRequest) -> Opened:
        """Open a document for a person."""
        language = self._language(request.language)
        if request.skip is not None:
            self.queue.skip(request.who, self.documents.ids[self.documents.row(request.skip)])
        if request.document is not None:
            document: str | None = self.queue.take(
                request.who, self.documents.ids[self.documents.row(request.document)]
            )
        else:
            document = self.queue.next(request.who, request.order)
        if document is None:
            return Opened(document=None, state=self._state(Reviewed({})))
        found, suggested = self.sitting.of(document), self._suggested(document)
        shown = {one.label for one in suggested}
        return Opened(
            document=document,
            parts=pieces_of(self._text(document), []),
            suggestions=[self._label(one.label, language, score=one.score) for one in suggested],
            others=[self._label(label, language) for label in found.marks if label not in shown],
            state=self._state(found),
        )

    def decide(self, request: DecideRequest) -> State:
        """Write a decision; it is on disk when the call returns."""
        if request.label is not None and self.labels.is_closed and not self.labels.knows(request.label):
            raise LabelwoodError(f"review: the vocabulary has no label {request.label[:100]!r}")
        suggested = [one.label for one in self._suggested(request.document)] if request.action == "done" else []
        found = self.sitting.decide(
            request.document, request.action, who=request.who, key=request.key, label=request.label,
            suggested=suggested,
        )  # fmt: skip
        return self._state(found)

    def undo(self, request: UndoRequest) -> Undone:
        """Take the last decision of a person back."""
        last = self.sitting.undo(who=request.who, key=request.key)
        if last is None:
            return Undone(document=None)
        return Undone(document=last.document, action=last.action, label=last.label)

    def find(self, query: str, limit: int, language: str) -> Found:
        """Search labels by the beginnings of words."""
        found = [*self.made.find(query, limit), *self.labels.find(query, limit, self._language(language))]
        return Found(labels=[_as_message(one) for one in found[:limit]])

    def why(self, document: str, label: str) -> Why:
        """Why a label fits a document."""
        text = self._text(document)
        evidence = self.proposals.why(text, label, self.labels.names_of(label))
        return Why(parts=pieces_of(text, evidence.marks), sentences=evidence.sentences)

    def export(self, format: Format) -> str:
        """The documents that are done, as a file."""
        return as_text(exported(self.documents, self.sitting.done(), self.labels, self.language), format)

    def close(self) -> None:
        """Close the log."""
        self.sitting.close()

    def _text(self, document: str) -> Document:
        return self.documents.texts[self.documents.row(document)]

    def _suggest(self, document: str) -> Sequence[Proposed]:
        return self.proposals.suggest(self._text(document))

    def _language(self, asked: str) -> str:
        return self.labels.language(asked or self.language)

    def _label(self, label: str, language: str, *, score: float | None = None) -> Label:
        return _as_message(self.labels.shown(label, language), score=score)

    def _state(self, found: Reviewed) -> State:
        return State(marks=found.marks, done_by=found.who, n_done=self.sitting.n_done)  # type: ignore[arg-type]


def _as_message(one: ShownLabel, *, score: float | None = None) -> Label:
    return Label(label=one.label, name=one.name, place=one.place, also=one.also, score=score)


def pieces_of(text: Document, marks: Sequence[Mark]) -> list[Part]:
    """A text cut at its marks; browsers count characters in another way, so that places would not do."""
    found = []
    for number, (name, content) in enumerate(parts_of(text)):
        pieces: list[tuple[str, float]] = []
        end = 0
        for mark in (one for one in marks if one.part == number):
            pieces += [(content[end : mark.start], 0.0), (content[mark.start : mark.end], mark.amount)]
            end = mark.end
        pieces.append((content[end:], 0.0))
        found.append(Part(name=name, pieces=[piece for piece in pieces if piece[0]]))
    return found
