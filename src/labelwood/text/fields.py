"""Fields of records, such as title and abstract: which are read, how much each counts, the n-grams of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.params import Param
from labelwood.sparse import F64
from labelwood.validation.column_names import column_names, n_dimensions
from labelwood.validation.embedded import Embedded

Fields = Annotated[
    dict[str, Any] | None,
    Param(
        'weight of each field of a record, such as {"title": 2, "abstract": 1}, or {"title": {"weight": 2, '
        '"ngram_range": [1, 2]}}; None takes plain texts'
    ),
]
Document = str | Mapping[str, Any]  # a text, or the texts of its fields

_LONGEST = 1000  # words or characters of the longest term


@dataclass(frozen=True)
class Field:
    """The name of a field, its weight, and its shortest and longest term."""

    name: str
    weight: float
    ngram_range: tuple[int, int]


def check_ngrams(span: Any, *, owner: str) -> tuple[int, int]:
    """The shortest and the longest term, if they are two integers in order."""
    whole = isinstance(span, tuple | list) and len(span) == 2 and all(isinstance(n, int | np.integer) for n in span)
    if not whole or not 1 <= span[0] <= span[1] <= _LONGEST:
        raise LabelwoodError(
            f"{owner}: ngram_range must be two integers, 1 <= shortest <= longest <= {_LONGEST}; got {span!r}"
        )
    return int(span[0]), int(span[1])


def read_fields(given: Mapping[str, Any] | None, ngram_range: Any, *, owner: str) -> tuple[Field, ...]:
    """The fields of a parameter, checked; ``ngram_range`` is that of fields without their own. None gives none."""
    common = check_ngrams(ngram_range, owner=owner)
    return () if given is None else tuple(_fields(given, common, owner))


def _fields(given: Mapping[Any, Any], common: tuple[int, int], owner: str) -> Iterable[Field]:
    rule = f"{owner}: fields must give each field a weight greater than 0"
    if not given or not all(isinstance(name, str) and name for name in given):
        raise LabelwoodError(f"{rule}; got {given!r}")
    for name, value in given.items():
        parts = dict(value) if isinstance(value, Mapping) else {"weight": value}
        weight, span = parts.pop("weight", 1.0), parts.pop("ngram_range", common)
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if parts or not is_number or not 0 < weight < np.inf:
            raise LabelwoodError(f"{rule}, or an object of weight and ngram_range; got {value!r} for {name}")
        yield Field(name, float(weight), check_ngrams(span, owner=f"{owner}: field {name}"))


def weights_of(fields: Sequence[Field]) -> F64:
    """The weights of fields, for the kernel."""
    return np.array([field.weight for field in fields], np.float64)


def strings_of(documents: Sequence[Document], fields: Sequence[Field], *, owner: str) -> list[str]:
    """The texts of all fields, document by document.

    A field that a record lacks is empty. A plain text is that of the first field.
    """
    names = [field.name for field in fields]
    rest = [""] * (len(names) - 1)
    strings: list[str] = []
    for position, document in enumerate(documents):
        if isinstance(document, str):
            strings += [document, *rest]
            continue
        if not isinstance(document, Mapping):
            raise LabelwoodError(
                f"{owner}: every document must be a record with the fields {', '.join(names)}, or a text; "
                f"got {type(document).__name__} at position {position}"
            )
        values = [document.get(name) for name in names]
        if all(value is None for value in values):
            raise LabelwoodError(
                f"{owner}: the record at position {position} has none of the fields {', '.join(names)}; "
                f"it has {', '.join(map(repr, list(document)[:12])) or 'no fields'}"
            )
        for name, value in zip(names, values, strict=True):
            if not (value is None or isinstance(value, str)):
                raise LabelwoodError(
                    f"{owner}: the field {name} must be a string; got {type(value).__name__} at position {position}"
                )
            strings.append(value or "")
    return strings


def list_records(documents: Any, fields: Sequence[Field], *, owner: str) -> list[Document]:
    """Records as a list; of a table, the columns of the fields."""
    Embedded.refuse(documents, owner)
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise LabelwoodError(
            f"{owner}: documents must be a list of records or a table; got {type(documents).__name__}. "
            "Pass a single record as a list of one."
        )
    if n_dimensions(documents) != 2:
        return list(documents)
    names, known = [field.name for field in fields], column_names(documents) or []
    missing = [name for name in names if name not in known]
    if missing:
        raise LabelwoodError(f"{owner}: the table lacks the column {missing[0]!r}; its columns are {known}")
    table: Any = documents
    columns = [[value if isinstance(value, str) else None for value in list(table[name])] for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
