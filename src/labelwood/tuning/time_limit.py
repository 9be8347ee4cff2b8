"""Stopping a training that takes too long: kernels check for signals, so an alarm can stop them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


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

    rung = over = False

    def ring(*_: Any) -> None:
        nonlocal rung
        if not over:
            rung = True
            raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, ring)
    # Repeated every second: an exception raised while Python runs a finalizer is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    except Exception as error:
        # The code that the alarm interrupts may answer with an error of its own: NumPy turns every error in the
        # reading of a buffer's format into a ValueError.
        if rung:
            raise OutOfTimeError from error
        raise
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
