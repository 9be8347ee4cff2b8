"""Large memory pages under the models of the service, which are read all over, a few rows at a time.

With pages of 4 KB nearly every row costs a walk through the page tables; with pages of 2 MB few do. Linux gives them to
whoever asks; elsewhere, and where it refuses, nothing changes but the speed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading
from collections.abc import Iterator

_PAGE = 2 * 2**20
_LEAST = 16 * 2**20  # smaller regions are not worth the copying
_USE_LARGE, _COLLAPSE = 14, 25  # of madvise: MADV_HUGEPAGE, MADV_COLLAPSE (Linux 6.1)


def use_large_pages() -> None:
    """Move the heap of this process, as it is now, to large pages."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for start, size in list(_regions()):
        if advise(start, size, _USE_LARGE) == 0:
            advise(start, size, _COLLAPSE)


def _regions() -> Iterator[tuple[int, int]]:
    """Start and size of the private memory that is no file's, cut to whole large pages."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            bounds, access, _, _, inode, *name = line.split()
            if access != "rw-p" or inode != "0" or (name and name != ["[heap]"]):
                continue
            first, end = (int(bound, 16) for bound in bounds.split("-"))
            start, stop = -(-first // _PAGE) * _PAGE, end // _PAGE * _PAGE
            if stop - start >= _LEAST:
                yield start, stop - start


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
