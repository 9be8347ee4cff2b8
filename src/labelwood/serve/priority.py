"""Which threads of the service go first where they share a core."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading

_TURN_NANOSECONDS = 100_000
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}  # number of the system call sched_setattr
_ATTRIBUTES = struct.Struct("<IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period
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


def take_short_turns() -> None:
    """Let this thread run as soon as it has something to do, in exchange for shorter turns.

    Linux (6.12 and later) otherwise lets a thread that is at work finish its turn of some milliseconds first. Elsewhere
    nothing changes.
    """
    number = _SET_ATTRIBUTES.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, _TURN_NANOSECONDS, 0, 0)
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)  # an older system refuses, and nothing changes
