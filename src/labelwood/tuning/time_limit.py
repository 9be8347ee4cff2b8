"""Stopping a training that takes too long: kernels check for signals, so an alarm can stop them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn


class OutOfTimeError(Exception):
    """The time is over."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTimeError` inside the block when the seconds are over.

    Only the main thread receives signals: in other threads, and on systems without alarms, nothing is stopped.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: Any) -> NoReturn:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, ring)
    # Repeated every second: an exception raised while Python runs a finalizer is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
