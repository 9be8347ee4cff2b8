"""One fit or prediction: threads, seed, memory limit, executor, allowed labels, and the seconds of its phases."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from labelwood.errors import LabelwoodError
from labelwood.progress import showing

if TYPE_CHECKING:
    from labelwood.executors import Checkpoint, Executor
    from labelwood.resources.memory import Limit
    from labelwood.sparse import I32

logger = logging.getLogger("labelwood")
logger.addHandler(logging.NullHandler())

_MOST_THREADS = 1024


class RunContext:
    """One fit or prediction: threads, seed, memory limit, executor, checkpoint, and the seconds of its phases.

    A prediction may have ``allowed``, the ascending ids of the only labels to search, and ``cancelled``, an event that
    ends its kernels.
    """

    def __init__(self, *, n_threads: int = 1, seed: int = 0, verbose: bool = False, limit: Limit | None = None) -> None:
        self.n_threads, self.seed, self.limit = n_threads, seed, limit
        self.executor: Executor | None = None  # None: threads, unless joblib is configured otherwise
        self.checkpoint: Checkpoint | None = None
        self.allowed: I32 | None = None  # None: all labels
        self.cancelled: threading.Event | None = None
        self._is_shown = verbose
        self.seconds: dict[str, float] = {}

    @property
    def is_local(self) -> bool:
        """True if this process does the work, on the very arrays that it is given."""
        return self.executor is None or getattr(self.executor, "is_local", False)

    @property
    def is_divided(self) -> bool:
        """True if the work is divided into units: for other processes, or for a checkpoint."""
        return self.checkpoint is not None or not self.is_local

    @contextlib.contextmanager
    def phase(self, name: str, total: int = 0) -> Iterator[Callable[[int], None] | None]:
        """Time a phase; yields the progress callback for kernels, None if none is shown and nothing can cancel."""
        start = time.perf_counter()
        try:
            with showing(name, total, wanted=self._is_shown) as progress:
                yield progress if self.cancelled is None else self._end_if_cancelled
        finally:
            taken = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + taken
            logger.info("%s: %.3f s", name, taken)

    def width(self, k: int) -> int:
        """The length of a list of k labels: at most the number of allowed labels."""
        return k if self.allowed is None else min(k, len(self.allowed))

    def _end_if_cancelled(self, done: int) -> None:
        if self.cancelled is not None and self.cancelled.is_set():
            raise LabelwoodError("the prediction was cancelled")


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(n_jobs: int | None, *, owner: str) -> int:
    """The number of threads for a parameter ``n_jobs``, by the convention of scikit-learn."""
    if n_jobs is None:
        return available_cores()
    if n_jobs == 0:
        raise LabelwoodError(f"{owner}: n_jobs must not be 0; use None or -1 for every core")
    return min(int(n_jobs), _MOST_THREADS) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))
