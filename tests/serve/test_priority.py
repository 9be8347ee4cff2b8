"""Threads that stand back."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from labelwood.serve.priority import stand_back

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
