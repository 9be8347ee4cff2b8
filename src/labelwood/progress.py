"""Progress bars on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

_REDRAW_SECONDS = 0.2
_SHOW_AFTER_SECONDS = 0.5
_BAR_CELLS = 24
_ITEMS_PER_CALL = 1024

Progress = Callable[[int], None] | None  # called with the work done so far; None if no progress is shown
Item = TypeVar("Item")


@dataclass
class Shown:
    """Which progress bars this process shows on a terminal; set by the command line.

    ``bars=False`` hides all of them. ``loading`` shows the bars for reading files, which no estimator asks for.
    """

    bars: bool = True
    loading: bool = False


SHOWN = Shown()


def is_shown(wanted: bool) -> bool:
    """True if a wanted bar is shown: stderr is a terminal and bars are not switched off."""
    return wanted and SHOWN.bars and sys.stderr.isatty()


class Bar:
    """A progress bar on stderr with percent, elapsed time and remaining time."""

    def __init__(self, title: str, total: int, *, offset: int = 0) -> None:
        self._title, self._total, self._offset = title, max(total, 1), offset
        self._start = self._drawn = time.monotonic()
        self._width = 0

    def __call__(self, done: int) -> None:
        """Redraw the bar, at most five times per second; kernels call it on the calling thread."""
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
        """Erase the bar."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


@contextlib.contextmanager
def loading(title: str, total: int) -> Iterator[Progress]:
    """Show a bar for reading a file, if such bars are shown; yields the function to call with the work done."""
    bar = Bar(title, total) if is_shown(SHOWN.loading) and total else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def watched(
    items: Iterable[Item], title: str, total: int, done: Callable[[int], int] = lambda number: number
) -> Iterator[Item]:
    """Yield the items and show a bar; ``done`` converts a number of items to work done."""
    with loading(title, total) as progress:
        for number, item in enumerate(items):
            if progress is not None and number % _ITEMS_PER_CALL == 0:
                progress(done(number))
            yield item
