"""Threads that stand back."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from labelwood.serve.os_tuning import stand_back, take_short_turns

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="priorities by thread are Linux's")


def standing():
    """Nice value and policy of the thread that asks."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), os.sched_getscheduler(0)


def test_a_thread_stands_back_with_those_it_starts_and_no_other():
    here = standing()

    def work():
        stand_back()
        with ThreadPoolExecutor(1) as pool:
            return standing(), pool.submit(standing).result()

    with ThreadPoolExecutor(1) as pool:
        own, started = pool.submit(work).result()
    assert own == started
    assert own[0] > here[0] or here[0] == 19
    assert own[1] == os.SCHED_BATCH
    assert standing() == here


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are x86-64's")
def test_short_turns_are_asked_for_by_a_thread_and_change_nothing_else():
    def turn():
        found = ctypes.create_string_buffer(56)
        assert ctypes.CDLL(None).syscall(315, 0, found, len(found), 0) == 0
        return int.from_bytes(found.raw[24:32], "little")

    def work():
        here = standing(), turn()
        take_short_turns()
        return here, (standing(), turn())

    with ThreadPoolExecutor(1) as pool:
        (standing_before, before), (standing_after, after) = pool.submit(work).result()
    assert standing_after == standing_before
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    assert after == (100_000 if release >= (6, 12) else before)
