"""Progress on stderr: a bar on a terminal, a line per minute elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

_REDRAW_SECONDS = 0.2
_SHOW_AFTER_SECONDS = 0.5
_LINE_SECONDS = 60
_BAR_CELLS = 24
_ITEMS_PER_CALL = 1024

Progress = Callable[[int], None] | None  # called with the work done so far; None if no progress is shown
Item = TypeVar("Item")


@dataclass
class Shown:
    """Which progress this process shows on stderr; set by the command line.

    ``bars=False`` hides all of it. ``loading`` shows the reading of files, which no estimator asks for.
    """

    bars: bool = True
    loading: bool = False


SHOWN = Shown()


@contextlib.contextmanager
def showing(title: str, total: int, *, wanted: bool) -> Iterator[Progress]:
    """Show the progress of some work, if wanted; yields the function to call with the work done, None if hidden."""
    if not (wanted and total and SHOWN.bars):
        yield None
        return
    bar = Bar(title, total) if sys.stderr.isatty() else Lines(title, total)
    try:
        yield bar
    finally:
        bar.close()


class Lines:
    """A line on stderr every minute, with percent, elapsed time and remaining time: for logs and batch jobs."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, max(total, 1)
        self._start = self._written = time.monotonic()

    def __call__(self, done: int) -> None:
        """Write a line if a minute has passed since the last one."""
        now = time.monotonic()
        if now - self._written < _LINE_SECONDS:
            return
        self._written = now
        share, elapsed = min(1.0, done / self._total), now - self._start
        left = f", about {elapsed * (1 - share) / share:.0f} s left" if share > 0.01 else ""
        sys.stderr.write(f"{self._title}: {share:.0%} after {elapsed:.0f} s{left}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Nothing to erase."""


class Bar:
    """A progress bar on stderr with percent, elapsed time and remaining time."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, max(total, 1)
        self._start = self._drawn = time.monotonic()
        self._width = 0

    def __call__(self, done: int) -> None:
        """Redraw the bar, at most five times per second; kernels call it on the calling thread."""
        now = time.monotonic()
        if now - self._start < _SHOW_AFTER_SECONDS or now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        share = min(1.0, done / self._total)
        elapsed = now - self._start
        left = f"{elapsed * (1 - share) / share:5.0f} s left" if share > 0.01 else ""
        filled = round(share * _BAR_CELLS)
        line = f"{self._title:<18} [{'#' * filled}{'.' * (_BAR_CELLS - filled)}] {share:4.0%} {elapsed:6.1f} s {left}"
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        """Erase the bar."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


def loading(title: str, total: int) -> contextlib.AbstractContextManager[Progress]:
    """Show the reading of a file, if the command line asks for it."""
    return showing(title, total, wanted=SHOWN.loading)


def watched(
    items: Iterable[Item], title: str, total: int, done: Callable[[int], int] = lambda number: number
) -> Iterator[Item]:
    """Yield the items and show their progress; ``done`` converts a number of items to work done."""
    with loading(title, total) as progress:
        for number, item in enumerate(items):
            if progress is not None and number % _ITEMS_PER_CALL == 0:
                progress(done(number))
            yield item
