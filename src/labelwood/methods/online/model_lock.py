"""One lock per growing model: methods that read it run at once, methods that change it run alone.

``docs/develop/promises.md`` has the table of what is promised. A method that reads may call others that read; a method
that changes the model may call all others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from labelwood import _core

P = ParamSpec("P")
R = TypeVar("R")


class Locked:
    """An object with a lock of its own, also after it was unpickled, copied or cloned."""

    reading: _core.ModelLock.Reading  # with model.reading: nobody changes the model
    changing: _core.ModelLock.Changing  # with model.changing: nobody else reads or changes the model

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An object with its lock."""
        made: Self = super().__new__(cls)
        lock = _core.ModelLock()
        made.reading, made.changing = lock.reading, lock.changing
        return made


LOCK = frozenset(("reading", "changing"))  # attributes that are neither saved nor copied

S = TypeVar("S", bound=Locked)


def reads(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method during which the model does not change."""

    @functools.wraps(method)
    def reading(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.reading:
            return method(self, *args, **kwargs)

    return reading


def changes(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that changes the model; no other thread reads or changes it meanwhile."""

    @functools.wraps(method)
    def changing(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.changing:
            return method(self, *args, **kwargs)

    return changing


def lock_inherited(cls: type[Locked], *, reading: Iterable[str], changing: Iterable[str]) -> None:
    """Let methods that a class inherits take its lock."""
    for wrap, names in ((reads, reading), (changes, changing)):
        for name in names:
            setattr(cls, name, wrap(getattr(cls, name)))
