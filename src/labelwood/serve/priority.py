"""Which threads of the service go first where they share a core."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

_STEPS_BACK = 5  # of nice: a third of the weight of a thread that has not stood back


def stand_back() -> None:
    """Let the other threads of this process go first from now on; those that this one starts stand back as well.

    Linux knows priorities by thread: this one gets less where others want to run, and does not interrupt them when it
    wakes up. Elsewhere nothing changes.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _STEPS_BACK)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
