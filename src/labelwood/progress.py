"""Progress by work done, for terminals, and the phases of a run with their seconds."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from labelwood.errors import LabelwoodError
from labelwood.memory import Limit

if TYPE_CHECKING:
    from labelwood.executors import Checkpoint, Executor

logger = logging.getLogger("labelwood")
logger.addHandler(logging.NullHandler())

_REDRAW_SECONDS = 0.2
_SHOW_AFTER_SECONDS = 0.5
_BAR_CELLS = 24
_MOST_THREADS = 1024
_LOOK_EVERY = 1024  # items of a loop between two looks at the clock

Item = TypeVar("Item")


@dataclass
class Shown:
    """What is drawn on terminals, for the whole process: the command line sets it.

    ``bars`` off hides every progress bar; ``loading`` shows those of reading files, which no estimator asks for.
    """

    bars: bool = True
    loading: bool = False


SHOWN = Shown()


class Bar:
    """A progress bar on stderr: percent, elapsed and remaining time, by units of work done."""

    def __init__(self, title: str, total: int, *, offset: int = 0) -> None:
        self._title, self._total, self._offset = title, max(total, 1), offset
        self._start = self._drawn = time.monotonic()
        self._width = 0

    def __call__(self, done: int) -> None:
        """Draw, at most a few times a second; called by kernels on the calling thread."""
        now = time.monotonic()
        if now - self._start < _SHOW_AFTER_SECONDS or now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        share = min(1.0, (self._offset + done) / self._total)
        elapsed = now - self._start
        left = f"{elapsed * (1 - share) / share:5.0f} s left" if share > 0.01 else ""
        filled = round(share * _BAR_CELLS)
        line = f"{self._title:<18} [{'#' * filled}{'.' * (_BAR_CELLS - filled)}] {share:4.0%} {elapsed:6.1f} s {left}"
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        """Wipe the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class Run:
    """One fit or prediction: threads, seed, limit of memory, where it is done, seconds of its phases."""

    def __init__(
        self, *, n_threads: int = 1, seed: int = 0, verbose: bool = False, limit: Limit | None = None
    ) -> None:
        self.n_threads, self.seed, self.limit = n_threads, seed, limit
        self.executor: Executor | None = None  # None: threads, unless joblib is set to something else
        self.checkpoint: Checkpoint | None = None
        self._visible = verbose and SHOWN.bars and sys.stderr.isatty()
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str, total: int = 0) -> Iterator[Callable[[int], None] | None]:
        """Time a phase; yields the callback to hand to kernels (None when nothing is shown)."""
        start = time.perf_counter()
        bar = Bar(name, total) if self._visible and total else None
        try:
            yield bar
        finally:
            if bar is not None:
                bar.close()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            logger.debug("%s: %.3f s", name, self.seconds[name])


@contextlib.contextmanager
def loading(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar for reading a file, if such bars are shown; yields what to call with the work done."""
    with Run(verbose=SHOWN.loading).phase(title, total) as progress:
        yield progress


def watched(
    items: Iterable[Item], title: str, total: int, done: Callable[[int], int] = lambda number: number
) -> Iterator[Item]:
    """The items, with a bar that asks ``done`` now and then how far that number of items is."""
    with loading(title, total) as progress:
        for number, item in enumerate(items):
            if progress is not None and number % _LOOK_EVERY == 0:
                progress(done(number))
            yield item


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(n_jobs: int | None, *, owner: str) -> int:
    """The threads that a parameter ``n_jobs`` asks for, by the convention of scikit-learn."""
    if n_jobs is None:
        return available_cores()
    if n_jobs == 0:
        raise LabelwoodError(f"{owner}: n_jobs must not be 0; use None or -1 for every core")
    return min(int(n_jobs), _MOST_THREADS) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))
