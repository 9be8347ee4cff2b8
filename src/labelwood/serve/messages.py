"""Requests and responses; the OpenAPI description is generated from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from labelwood.label_names import MAX_NAME, name_problem

MAX_K = 1000
MAX_ROWS = 1000
MAX_LABELS = 1000
MAX_FEATURES = 100_000


def _sound(text: str) -> str:
    """Raise if a text has half characters, which JSON can express and UTF-8 cannot encode."""
    text.encode()
    return text


def _named(name: str) -> str:
    """Raise if a name breaks the rule for label names."""
    problem = name_problem(name)
    if problem is not None:
        raise ValueError(problem)
    return name


Text = Annotated[str, AfterValidator(_sound)]
LabelName = Annotated[str, AfterValidator(_named), Field(json_schema_extra={"minLength": 1, "maxLength": MAX_NAME})]
LabelNumber = Annotated[int, Field(strict=True, ge=-(2**53), le=2**53)]
Label = LabelName | LabelNumber
KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
Column = Annotated[int, Field(ge=0, le=2**53)]
Value = Annotated[float, Field(ge=-1e30, le=1e30, allow_inf_nan=False)]
K = Annotated[int, Field(ge=1, le=MAX_K, description="the largest number of labels")]
Threshold = Annotated[float, Field(ge=0, le=1, description="the lowest score of a suggested label")]
Allowed = Annotated[
    list[Label] | None, Field(max_length=10_000, description="suggest only these labels; null allows all labels")
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Input(_Strict):
    """Either a text, or features (column to value) for a model of vectors."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["text"], "properties": {"text": {"type": "string"}}},
                {"required": ["features"], "properties": {"features": {"type": "object"}}},
            ]
        }
    )

    text: Annotated[Text | None, Field(description="the text to suggest labels for")] = None
    features: Annotated[
        dict[Column, Value] | None,
        Field(
            max_length=MAX_FEATURES,
            description='column to value, {"12": 0.5}',
            json_schema_extra={"propertyNames": {"pattern": "^[0-9]{1,15}$"}},
        ),
    ] = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.text is None) == (self.features is None):
            raise ValueError("exactly one of text and features must be given")
        return self


class SuggestRequest(Input):
    """An input, and options of the suggestions."""

    k: K = 10
    threshold: Threshold = 0.0
    allowed: Allowed = None


class SuggestBatchRequest(_Strict):
    """Several inputs, and options of their suggestions."""

    inputs: Annotated[list[Input], Field(min_length=1, max_length=MAX_ROWS)]
    k: K = 10
    threshold: Threshold = 0.0
    allowed: Allowed = None


class ExplainRequest(Input):
    """An input whose k best labels are explained, and labels that are missed among them."""

    k: Annotated[int, Field(ge=1, le=100)] = 5
    missed: Annotated[list[Label], Field(max_length=100)] = []
    n_features: Annotated[int, Field(ge=1, le=1000, description="the largest number of features per step")] = 10


class Example(Input):
    """An input and all of its labels. Labels may be new."""

    labels: Annotated[list[Label], Field(max_length=MAX_LABELS)]


class LearnRequest(_Strict):
    """Examples. They are learned in this order."""

    examples: Annotated[list[Example], Field(min_length=1, max_length=MAX_ROWS)]


class LabelChange(_Strict):
    """A change of one label. ``to`` is the new name, or the label to merge into."""

    action: Literal["rename", "retire", "merge", "restore"]
    label: Label
    to: Label | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if (self.action in ("rename", "merge")) != (self.to is not None):
            raise ValueError("rename and merge require 'to'; retire and restore do not take it")
        return self


class SuggestedLabel(BaseModel):
    """A label and its score."""

    label: str | int
    score: float


class Suggestions(BaseModel):
    """Labels, best first."""

    suggestions: list[SuggestedLabel]


def as_message(found: Iterable[tuple[str | int, float]]) -> Suggestions:
    """The response for labels and their scores."""
    return Suggestions(suggestions=[SuggestedLabel(label=label, score=score) for label, score in found])


class BatchSuggestions(BaseModel):
    """The suggestions of each input, in the order of the request."""

    results: list[Suggestions]


class LearnedExamples(BaseModel):
    """What was learned. It is on disk, and suggestions reflect it."""

    learned: int
    new_labels: int
    sequence: Annotated[int, Field(description="number of the record in the log")]
    replayed: Annotated[bool, Field(description="true if an earlier request with the same key was applied instead")]


class ChangedLabel(BaseModel):
    """The change that was made. It is on disk, and suggestions reflect it."""

    action: str
    label: str | int
    to: str | int | None
    sequence: int
    replayed: bool


class LabelEntry(BaseModel):
    """A label and its records. Support, age and idle are numbers of examples."""

    label: str | int
    state: str
    support: int
    age: int | None = None
    idle: int | None = None
    merged_into: str | int | None = None


class LabelList(BaseModel):
    """A part of the labels, in the order of their ids; ``total`` counts all labels that were asked for."""

    total: int
    labels: list[LabelEntry]


class ModelInfo(BaseModel):
    """The model and the state of the service; ``name`` is the name of the model's directory."""

    name: str
    method: str
    takes: Literal["text", "features"]
    labels: int
    features: int
    learns: bool
    facts: dict[str, Any]
    service: Annotated[dict[str, float], Field(description="the gauges of /metrics, without their prefix")]


class Status(BaseModel):
    """The state of the process; ``learning`` says why learning is refused, and is empty if it is not."""

    status: str
    learning: str = ""


class Problem(BaseModel):
    """An error."""

    detail: str
