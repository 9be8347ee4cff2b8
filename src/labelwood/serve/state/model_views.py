"""What readers look at: a model that nobody is changing, at any moment, without waiting.

:class:`LiveView` holds two copies of a model that learns. Readers use one while the writer teaches the other; then they
change places and the writer teaches the same to the copy that fell behind. A reader never waits for learning, and never
sees half of a batch. :class:`FollowedView` holds a model on disk and takes up whatever replaces it there.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.methods import METHODS, load
from labelwood.methods.online.learner import learner_of
from labelwood.methods.text_classifier import ENCODER, Model, TextClassifier
from labelwood.run_context import logger
from labelwood.serve.state.state_machine import Step
from labelwood.storage.model_directory import MANIFEST

T = TypeVar("T")

_LOOK_SECONDS = 0.5


class View(Protocol):
    """Something that lends a model out for reading."""

    def read(self) -> contextlib.AbstractContextManager[Model]:
        """A model that stays as it is until the block ends."""
        ...


class LiveView:
    """Two copies of a model, one to read and one to teach; :meth:`teach` is for one thread only."""

    def __init__(self, one: Model, other: Model, *, n_jobs: int) -> None:
        self._copies = [with_threads(one, n_jobs), with_threads(other, n_jobs)]
        self._front = 0
        self._readers = [0, 0]
        self._changed = threading.Condition()
        self._owed: list[Step] = []

    @contextlib.contextmanager
    def read(self) -> Iterator[Model]:
        """The copy in front."""
        with self._changed:
            side = self._front
            self._readers[side] += 1
        try:
            yield self._copies[side]
        finally:
            with self._changed:
                self._readers[side] -= 1
                if not self._readers[side]:
                    self._changed.notify_all()

    def teach(self, change: Callable[[Model], tuple[T, list[Step]]]) -> T:
        """Change the copy behind and bring it to the front; :meth:`catch_up` must follow.

        ``change`` returns its result and the steps that change an equal copy likewise.
        """
        behind = 1 - self._front
        result, self._owed = change(self._copies[behind])
        with self._changed:
            self._front = behind
        return result

    def catch_up(self) -> None:
        """Change the other copy likewise, once its last reader has left."""
        behind = 1 - self._front
        with self._changed:
            self._changed.wait_for(lambda: not self._readers[behind])
        for step in self._owed:
            step(learner_of(self._copies[behind], owner="serve"))
        self._owed = []

    def replace(self, one: Model, other: Model, *, n_jobs: int) -> None:
        """Swap both copies for another model; whoever reads the old one may finish."""
        fresh = [with_threads(one, n_jobs), with_threads(other, n_jobs)]
        with self._changed:
            self._changed.wait_for(lambda: not self._readers[1 - self._front])
            self._copies[1 - self._front] = fresh[0]
            self._front = 1 - self._front
            self._changed.wait_for(lambda: not self._readers[1 - self._front])
            self._copies[1 - self._front] = fresh[1]


class FollowedView:
    """A model directory; what replaces it is loaded beside it and taken up between two requests."""

    def __init__(self, path: Path, *, n_jobs: int) -> None:
        self._path, self._n_jobs = path, n_jobs
        self._seen = self._mark()
        self._model = with_threads(load(path), n_jobs)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follow", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def read(self) -> Iterator[Model]:
        """The model of this moment."""
        yield self._model

    def look(self) -> bool:
        """Take up a model that has replaced the one in use; whether there was one."""
        mark = self._mark()
        if mark is None or mark == self._seen:
            return False
        self._seen = mark
        try:
            self._model = with_threads(load(self._path), self._n_jobs)
        except (LabelwoodError, OSError) as error:
            logger.warning("the model in use is kept; the new one cannot be read: %s", error)
            return False
        return True

    def close(self) -> None:
        """Stop following."""
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self.look()

    def _mark(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path / MANIFEST)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns


def with_threads(model: Model, n_jobs: int) -> Model:
    """The model, set to use so many threads."""
    model.set_threads(n_jobs)
    return model


def copy_of(model: Model) -> Model:
    """A second model in the same state, bit for bit, that shares nothing which learning changes."""
    return from_saved(*model.to_saved())


def from_saved(manifest: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Model:
    """The model that was captured with ``to_saved``."""
    method = METHODS[manifest["method"]]
    if ENCODER in manifest:
        return TextClassifier.from_saved(method, manifest, arrays, where="copy")
    return method.from_saved(manifest, arrays, where="copy")


def packed_for_reading(model: Model) -> Model:
    """A frozen copy of a model that learns: its arrays can be mapped by any number of processes."""
    return model.with_classifier(learner_of(model, owner="serve").freeze())
