"""Long answers: a thread writes their JSON piece by piece, while the event loop answers others.

One call that writes a list of a million labels would keep all threads waiting; a piece takes a few milliseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import takewhile
from typing import Any

from fastapi import Response
from pydantic_core import to_json

from labelwood.explain import Explanation, Member
from labelwood.serve.messages import LabelList, as_fields
from labelwood.serve.service import Suggestion, in_thread

Pieces = Iterator[bytes]


async def written(pieces: Callable[[], Iterable[bytes]]) -> Response:
    """An answer whose pieces are made in a thread; if nobody waits for it any more, the thread ends."""

    def write(cancelled: threading.Event) -> bytes:
        return b"".join(takewhile(lambda _: not cancelled.is_set(), pieces()))

    return Response(await in_thread(write), media_type="application/json")


def of_suggestions(results: Iterable[list[Suggestion]]) -> Pieces:
    """The JSON of :class:`~labelwood.serve.messages.BatchSuggestions`."""
    yield b'{"results":'
    yield from _listed({"suggestions": [as_fields(*one) for one in row]} for row in results)
    yield b"}"


def of_labels(found: LabelList) -> Pieces:
    """The JSON of a list of labels."""
    yield b'{"total":%d,"labels":' % found.total
    yield from _listed(entry.model_dump(exclude_unset=True) for entry in found.labels)
    yield b"}"


def of_explanation(explanation: Explanation | Member) -> Pieces:
    """The JSON of an explanation; those of its members are cut into pieces as well."""
    for place, one in enumerate(fields(explanation)):
        value = getattr(explanation, one.name)
        yield (b"," if place else b"{") + to_json(one.name) + b":"
        yield from _listed(value) if isinstance(value, tuple) else _written(value)
    yield b"}"


def _listed(values: Iterable[Any]) -> Pieces:
    mark = b"["
    for value in values:
        yield mark
        yield from _written(value)
        mark = b","
    yield b"[]" if mark == b"[" else b"]"


def _written(value: Any) -> Pieces:
    if isinstance(value, Explanation | Member):
        return of_explanation(value)
    return iter([to_json(value, inf_nan_mode="null")])
