"""A model directory that the service only reads, and that another process may replace."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from labelwood.errors import LabelwoodError
from labelwood.methods.registry import load
from labelwood.methods.text_classifier import Model
from labelwood.run_context import logger
from labelwood.storage.model_directory import MANIFEST

_LOOK_SECONDS = 0.5


class FollowedModel:
    """Lends the model of a directory, and loads its successor when the directory is replaced.

    ``find`` gives the path of the directory, which may change.
    """

    def __init__(self, find: Callable[[], Path], *, n_jobs: int) -> None:
        self._find, self._n_jobs = find, n_jobs
        self._seen = self._mark()
        self._model = self._load()
        self.reload_error = ""  # why the newest model of the directory is not in use
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follow", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def read(self) -> Iterator[Model]:
        """Lend the current model. It does not change until the block ends."""
        yield self._model

    def look(self) -> bool:
        """Load the model if the directory was replaced; return True if there is a new model."""
        mark = self._mark()
        if mark == self._seen:
            return False
        self._seen = mark
        try:
            self._model = self._load()
        except (LabelwoodError, OSError, MemoryError) as error:
            self.reload_error = str(error) or type(error).__name__
            logger.warning("the model in use is kept: %s", self.reload_error)
            return False
        self.reload_error = ""
        return True

    def close(self) -> None:
        """Stop following the directory."""
        self._ended.set()
        self._thread.join()

    def _load(self) -> Model:
        model = load(self._find())
        model.set_threads(self._n_jobs)
        return model

    def _follow(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self.look()

    def _mark(self) -> tuple[int, ...] | None:
        """What changes when the directory is replaced; None if there is no model."""
        try:
            found = os.stat(self._find() / MANIFEST)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns
