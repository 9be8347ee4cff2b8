"""The priority of threads: those that write run behind the one that answers."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

_NICE_STEPS = 5  # a third of the CPU time of a thread that has not stood back


def stand_back() -> None:
    """Lower the priority of this thread and of the threads that it starts.

    The thread that answers requests then runs first while a snapshot is written; ``benchmarks/service/tricks.py``
    measures the gain. Linux has priorities by thread; on other systems this does nothing.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICE_STEPS)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
