"""Progress bars on a terminal, driven by the work done."""

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


def is_shown(wanted: bool) -> bool:
    """True if a bar that the caller wants appears: stderr is a terminal and bars are not switched off."""
    return wanted and SHOWN.bars and sys.stderr.isatty()


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


@contextlib.contextmanager
def loading(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar for reading a file, if such bars are shown; yields what to call with the work done."""
    bar = Bar(title, total) if is_shown(SHOWN.loading) and total else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def watched(
    items: Iterable[Item], title: str, total: int, done: Callable[[int], int] = lambda number: number
) -> Iterator[Item]:
    """The items, with a bar that asks ``done`` now and then how far that number of items is."""
    with loading(title, total) as progress:
        for number, item in enumerate(items):
            if progress is not None and number % _LOOK_EVERY == 0:
                progress(done(number))
            yield item
