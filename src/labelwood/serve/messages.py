"""Requests and responses; the OpenAPI description is generated from them.

A request is refused with its first few errors. No part of it is validated in full once it is known to be wrong: lists,
features and unknown fields stop at the first error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from labelwood.errors import nearest
from labelwood.label_names import MAX_NAME, name_problem

MAX_K = 1000
MAX_ROWS = 1000
MAX_LABELS = 1000
MAX_FEATURES = 100_000
MAX_FIELDS = 100
MAX_TEXTS = 100  # of one label
MAX_WIDTH = 100_000
_LAST_COLUMN, _LARGEST_VALUE = 2**53, 1e30


def _sound(text: str) -> str:
    """Raise if a text has half characters, which JSON can express and UTF-8 cannot encode."""
    text.encode()
    return text


def _few_texts(given: Any) -> Any:
    """Refuse many fields before each is looked at; a few get an error each."""
    if isinstance(given, Mapping) and len(given) > MAX_FIELDS:
        raise ValueError(f"a text must have at most {MAX_FIELDS} fields; got {len(given)}")
    return given


def _named(name: str) -> str:
    """Raise if a name breaks the rule for label names."""
    problem = name_problem(name)
    if problem is not None:
        raise ValueError(problem)
    return name


Text = Annotated[str, AfterValidator(_sound)]
FieldTexts = Annotated[dict[str, Text], BeforeValidator(_few_texts), Field(min_length=1, max_length=MAX_FIELDS)]
LabelName = Annotated[str, AfterValidator(_named), Field(json_schema_extra={"minLength": 1, "maxLength": MAX_NAME})]
LabelNumber = Annotated[int, Field(strict=True, ge=-(2**53), le=2**53)]
Label = LabelName | LabelNumber
KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
K = Annotated[int, Field(ge=1, le=MAX_K, description="the largest number of labels")]
Threshold = Annotated[float, Field(ge=0, le=1, description="the lowest score of a suggested label")]
Language = Annotated[
    Annotated[str, StringConstraints(max_length=35, pattern=r"^[A-Za-z0-9-]*$")] | None,
    Field(description="language of the names, for a model with a vocabulary; null: that of the service"),
]
Allowed = Annotated[
    Annotated[list[Label], Field(fail_fast=True, max_length=10_000)] | None,
    Field(description="suggest only these labels; null allows all labels"),
]


def _read_features(given: Any) -> dict[int, float] | None:
    """Column to value, or None; raise at the first entry that is wrong."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) > MAX_FEATURES:
        raise ValueError(f"features must be an object of at most {MAX_FEATURES} columns and values")
    try:
        columns, values = [*map(int, given)], [*map(float, given.values())]
        sound = not columns or (
            min(columns) >= 0
            and max(columns) <= _LAST_COLUMN
            and all(map(math.isfinite, values))
            and max(values) <= _LARGEST_VALUE
            and min(values) >= -_LARGEST_VALUE
        )
    except (TypeError, ValueError, OverflowError):
        sound = False
    if sound:
        return dict(zip(columns, values, strict=True))
    column, value = next(entry for entry in given.items() if not _is_feature(*entry))
    raise ValueError(
        f"a column must be an integer from 0 to 2^53, and a value a number of at most {_LARGEST_VALUE:g}; "
        f"got {_shown(column)}: {_shown(value)}"
    )


def _is_feature(column: Any, value: Any) -> bool:
    try:
        return 0 <= int(column) <= _LAST_COLUMN and abs(float(value)) <= _LARGEST_VALUE
    except (TypeError, ValueError, OverflowError):
        return False


def _shown(given: Any) -> str:
    """A part of a request, cut to a few characters."""
    if isinstance(given, str | int | float):
        return repr(given[:40] if isinstance(given, str) else given)[:60]
    return "an object" if isinstance(given, Mapping) else "a list" if isinstance(given, list) else "null"


Features = Annotated[
    dict[int, float] | None,
    PlainValidator(_read_features),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "maxProperties": MAX_FEATURES,
                    "propertyNames": {"pattern": "^[0-9]{1,15}$"},
                    "additionalProperties": {"type": "number", "minimum": -_LARGEST_VALUE, "maximum": _LARGEST_VALUE},
                },
                {"type": "null"},
            ]
        }
    ),
    Field(description='column to value, {"12": 0.5}'),
]


def _read_vector(given: Any) -> list[float] | None:
    """The numbers of a vector, or None; raise at the first that is wrong."""
    if given is None:
        return None
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_WIDTH:
        raise ValueError(f"vector must be a list of 1 to {MAX_WIDTH} numbers")
    for place, value in enumerate(given):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not -_LARGEST_VALUE <= value <= _LARGEST_VALUE:
            raise ValueError(f"number {place} must be at most {_LARGEST_VALUE:g} in magnitude; got {_shown(value)}")
    return [*map(float, given)]


Vector = Annotated[
    list[float] | None,
    PlainValidator(_read_vector),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_WIDTH,
                    "items": {"type": "number", "minimum": -_LARGEST_VALUE, "maximum": _LARGEST_VALUE},
                },
                {"type": "null"},
            ]
        }
    ),
    Field(description="the vector beside the text, for a model of texts and vectors"),
]


class Strict(BaseModel):
    """A request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _knows_its_fields(cls, given: Any) -> Any:
        """Refuse the first field that is unknown, and look at no other."""
        known = cls.model_fields
        unknown = next((name for name in given if name not in known), None) if isinstance(given, dict) else None
        if unknown is not None:
            raise ValueError(
                f"there is no field {_shown(unknown)}{nearest(unknown, known)}; the fields are {', '.join(known)}"
            )
        return given


class Input(Strict):
    """Either a text, or features (column to value) for a model of vectors.

    The text of a model with fields is an object of texts, such as ``{"title": ..., "abstract": ...}``. A model that was
    trained on texts with vectors takes a vector beside each text.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["text"], "properties": {"text": {"type": ["string", "object"]}}},
                {"required": ["features"], "properties": {"features": {"type": "object"}, "vector": {"type": "null"}}},
            ]
        }
    )

    text: Annotated[
        Text | FieldTexts | None, Field(description="the text to suggest labels for, or the texts of its fields")
    ] = None
    features: Features = None
    vector: Vector = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.text is None) == (self.features is None):
            raise ValueError("exactly one of text and features must be given")
        if self.vector is not None and self.text is None:
            raise ValueError("a vector stands beside a text; got one beside features")
        return self


class SuggestRequest(Input):
    """An input, and options of the suggestions."""

    k: K = 10
    threshold: Threshold = 0.0
    allowed: Allowed = None
    language: Language = None


class SuggestBatchRequest(Strict):
    """Several inputs, and options of their suggestions."""

    inputs: Annotated[list[Input], Field(fail_fast=True, min_length=1, max_length=MAX_ROWS)]
    k: K = 10
    threshold: Threshold = 0.0
    allowed: Allowed = None
    language: Language = None


class ExplainRequest(Input):
    """An input whose k best labels are explained, and labels that are missed among them."""

    k: Annotated[int, Field(ge=1, le=100)] = 5
    missed: Annotated[list[Label], Field(fail_fast=True, max_length=100)] = []
    n_features: Annotated[int, Field(ge=1, le=1000, description="the largest number of features per step")] = 10
    language: Language = None


class Example(Input):
    """An input and all of its labels. Labels may be new."""

    labels: Annotated[list[Label], Field(fail_fast=True, max_length=MAX_LABELS)]


class LabelTexts(Strict):
    """Names and descriptions of a label, for a model of texts. The label may be new."""

    label: Label
    texts: Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=MAX_TEXTS)]


class LearnRequest(Strict):
    """Examples, learned in this order, and texts of labels, each learned after them as an example of its label."""

    examples: Annotated[list[Example], Field(fail_fast=True, max_length=MAX_ROWS)] = []
    label_texts: Annotated[list[LabelTexts], Field(fail_fast=True, max_length=MAX_ROWS)] = []

    @model_validator(mode="after")
    def _has_something_to_learn(self) -> Self:
        if not self.examples and not self.label_texts:
            raise ValueError("examples or label_texts must have at least one entry")
        n_learned = len(self.examples) + sum(len(one.texts) for one in self.label_texts)
        if n_learned > MAX_ROWS:
            raise ValueError(f"a request must have at most {MAX_ROWS} examples and texts of labels; got {n_learned}")
        return self


class LabelChange(Strict):
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
    """A label and its score; ``name`` is that of its concept, if the model has a vocabulary."""

    label: str | int
    score: float
    name: str | None = None


class Suggestions(BaseModel):
    """Labels, best first."""

    suggestions: list[SuggestedLabel]


def as_message(found: Iterable[tuple[str | int, float, str | None]]) -> Suggestions:
    """The response for labels, their scores and their names."""
    return Suggestions(suggestions=[SuggestedLabel(**as_fields(*one)) for one in found])


def as_fields(label: str | int, score: float, name: str | None) -> dict[str, Any]:
    """The fields of a suggested label; one without a name has no field for it."""
    return {"label": label, "score": score} if name is None else {"label": label, "name": name, "score": score}


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
    """A label and its records. Support, age and idle are numbers of examples; ``name`` is that of its concept."""

    label: str | int
    name: str | None = None
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
    """The model and the state of the service; ``name`` is the name of the model's directory.

    ``languages`` are those of the names in its vocabulary; ``language`` is the one that is shown by default.
    """

    name: str
    method: str
    takes: Literal["text", "features"]
    vector: Annotated[int, Field(description="the numbers of the vector beside each text; 0 if there is none")] = 0
    fields: Annotated[list[str], Field(description="the fields of a text; none if it is one string")] = []
    labels: int
    features: int
    learns: bool
    languages: list[str]
    language: str
    facts: dict[str, Any]
    service: Annotated[dict[str, float], Field(description="the gauges of /metrics, without their prefix")]


class GaugesOverTime(BaseModel):
    """Gauges of /metrics, without their prefix, at some times (seconds since 1970)."""

    seconds: list[float]
    values: dict[str, list[float]]


class Status(BaseModel):
    """The state of the process.

    ``learning`` says why learning is refused, and ``model`` why the newest model is not in use; both are empty if all
    is well.
    """

    status: str
    learning: str = ""
    model: str = ""


class Problem(BaseModel):
    """An error."""

    detail: str
