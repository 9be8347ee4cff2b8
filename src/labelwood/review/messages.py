"""Requests and responses of the review page."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from labelwood.label_names import name_problem
from labelwood.review.documents import LONGEST_ID
from labelwood.review.progress import Progress
from labelwood.review.queue import Order
from labelwood.review.sitting import Action
from labelwood.serve.messages import KeyText, LabelName, Strict


def _printable(name: str) -> str:
    if (problem := name_problem(name)) is not None:
        raise ValueError(problem)
    return name


Who = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60), AfterValidator(_printable)]
Id = Annotated[str, Field(max_length=LONGEST_ID)]
Tag = Annotated[str, StringConstraints(max_length=35, pattern=r"^[A-Za-z0-9-]*$")]


class OpenRequest(Strict):
    """Open a document: the one with this id, or the next one; ``skip`` is a document to leave for later."""

    who: Who
    document: Id | None = None
    order: Order = "order"
    language: Tag = ""
    skip: Id | None = None


class DecideRequest(Strict):
    """A decision about one label of a document, or that the document is done."""

    who: Who
    key: KeyText
    document: Id
    action: Action
    label: LabelName | None = None


class UndoRequest(Strict):
    """Take the last decision of a person back."""

    who: Who
    key: KeyText


class Label(BaseModel):
    """A label with its name and the names of broader concepts, the broadest first."""

    label: str
    name: str
    place: list[str]
    also: str | None = None
    score: float | None = None


class Part(BaseModel):
    """A part of a text: the name of its field, and its pieces, each with what it says for a label or against it."""

    name: str
    pieces: list[tuple[str, float]]


class State(BaseModel):
    """What people have said about a document."""

    marks: dict[str, Literal["accept", "reject"]]
    done_by: str | None
    n_done: int


class Opened(BaseModel):
    """A document with its suggestions; ``document`` is null if nothing is left."""

    document: str | None
    parts: list[Part] = []
    suggestions: list[Label] = []
    others: Annotated[list[Label], Field(description="labels that people have marked and that are not suggested")] = []
    state: State


class Undone(BaseModel):
    """The decision that was taken back; ``document`` is null if there was none."""

    document: str | None
    action: str | None = None
    label: str | None = None


class Why(BaseModel):
    """Why a label fits a document: the text with its words marked, and sentences."""

    parts: list[Part]
    sentences: list[str]


class Found(BaseModel):
    """The labels that a search found."""

    labels: list[Label]


class Facts(BaseModel):
    """What is reviewed, and what the page may offer."""

    title: str
    documents: int
    labels: int
    has_model: bool
    order: Order
    languages: list[str]
    language: str
    new_labels: bool
    people: list[str]
    progress: Progress
