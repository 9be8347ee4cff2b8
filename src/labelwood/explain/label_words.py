"""The names of the labels that an explanation speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelwood.explain.records import Explanation


def with_names(explanation: Explanation, name: Callable[[Any], str | None]) -> Explanation:
    """The explanation with the names of its labels; labels without a name are left out of ``names``."""
    labels = dict.fromkeys(_labels(explanation))
    return replace(explanation, names={str(label): found for label in labels if (found := name(label)) is not None})


def in_words(explanation: Explanation) -> Explanation:
    """The explanation with ``name <label>`` in the place of every label that has a name."""
    if not explanation.names:
        return explanation
    shown = {label: f"{name} <{label}>" for label, name in explanation.names.items()}
    found: Explanation = _replaced(explanation, shown)
    return found


def _labels(record: Any) -> Iterator[Any]:
    if isinstance(record, tuple):
        for part in record:
            yield from _labels(part)
    elif is_dataclass(record):
        for field in fields(record):
            value = getattr(record, field.name)
            if field.name == "label" and value is not None:
                yield value
            else:
                yield from _labels(value)


def _replaced(record: Any, shown: dict[str, str]) -> Any:
    if isinstance(record, tuple):
        return tuple(_replaced(part, shown) for part in record)
    if not is_dataclass(record) or isinstance(record, type):
        return record
    changed = {field.name: _replaced(getattr(record, field.name), shown) for field in fields(record)}
    if changed.get("label") is not None:
        changed["label"] = shown.get(str(changed["label"]), changed["label"])
    return replace(record, **changed)
