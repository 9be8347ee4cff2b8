"""One lock per growing model: methods that read it run at once, methods that change it run alone.

``docs/develop/promises.md`` has the table of what is promised. A method that reads may call others that read; a method
that changes the model may call all others.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from labelwood import _core

P = ParamSpec("P")
R = TypeVar("R")


_MAKING = threading.Lock()
LOCK = frozenset(("_reading", "_changing"))  # attributes that are neither saved nor copied


class _MadeOnFirstUse:
    """One of the two sides of a model's lock; afterwards both are attributes of the model."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: object | None, owner: type) -> Any:
        if model is None:  # asked of the class
            return self
        with _MAKING:
            own = vars(model)
            if self._name not in own:
                lock = _core.ModelLock()
                own["_reading"], own["_changing"] = lock.reading, lock.changing
            return own[self._name]


class Locked:
    """An object with a lock of its own, also after it was unpickled, copied or cloned."""

    _reading = _MadeOnFirstUse()
    _changing = _MadeOnFirstUse()

    @property
    def reading(self) -> AbstractContextManager[None]:
        """``with model.reading``: nobody changes the model."""
        return cast("AbstractContextManager[None]", self._reading)

    @property
    def changing(self) -> AbstractContextManager[None]:
        """``with model.changing``: nobody else reads or changes the model."""
        return cast("AbstractContextManager[None]", self._changing)


S = TypeVar("S", bound=Locked)


def reads(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method during which the model does not change."""

    @functools.wraps(method)
    def reading(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._reading:
            return method(self, *args, **kwargs)

    return reading


def changes(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that changes the model; no other thread reads or changes it meanwhile."""

    @functools.wraps(method)
    def changing(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._changing:
            return method(self, *args, **kwargs)

    return changing


def lock_inherited(cls: type[Locked], *, reading: Iterable[str], changing: Iterable[str]) -> None:
    """Let methods that a class inherits take its lock."""
    for wrap, names in ((reads, reading), (changes, changing)):
        for name in names:
            setattr(cls, name, wrap(getattr(cls, name)))
