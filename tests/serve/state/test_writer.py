"""The writer: records count once, are applied in their order, and are refused alike on every replay."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import assert_same_state, example, learn, online_model, taught

from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.priority import stand_back
from labelwood.serve.state.writer import KeyReusedError, StoppedError


def test_records_are_applied_in_their_order(writer_at, any_model):
    writer = writer_at()
    futures = [writer.submit(learn(number)) for number in range(50)]
    futures.append(writer.submit({"kind": "labels", "action": "retire", "label": "law", "to": None}))
    futures += [writer.submit(learn(number)) for number in range(50, 60)]
    assert [future.result().answer["sequence"] for future in futures] == list(range(2, 63))
    writer.close(snapshot=False)
    expected = taught(any_model, range(50))
    estimator_of(expected).labels.retire("law")
    for number in range(50, 60):
        one = example(number)
        estimator_of(expected).partial_fit(expected.encode([one["text"]]), [one["labels"]])
    assert_same_state(writer.store.machine.model, expected)
    assert_same_state(writer_at().store.machine.model, expected)


def test_keys_count_once_across_restarts(writer_at, model):
    writer = writer_at()
    first = writer.submit(learn(1, key="a")).result()
    again = writer.submit(learn(1, key="a")).result()
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answer == first.answer
    writer.close(snapshot=False)
    writer = writer_at()  # from the log
    assert writer.submit(learn(1, key="a")).result().replayed
    writer.submit(learn(2, key="b")).result()
    writer.close()
    writer = writer_at()  # from a snapshot
    assert writer.submit(learn(1, key="a")).result().answer == first.answer
    with pytest.raises(KeyReusedError):
        writer.submit(learn(3, key="a")).result()
    assert_same_state(writer.store.machine.model, taught(model, [1, 2]))


def test_the_same_key_twice_in_one_flush(writer_at, model):
    writer = writer_at()
    futures = [writer.submit(learn(number % 3, key=str(number % 3))) for number in range(30)]
    assert sum(future.result().replayed for future in futures) == 27
    assert_same_state(writer.store.machine.model, taught(model, range(3)))


def test_a_refused_record_changes_nothing_then_and_later(writer_at, model):
    writer = writer_at()
    writer.submit(learn(1)).result()
    bad = {"kind": "learn", "examples": [{"features": {"1": 1.0}, "labels": ["x"]}]}
    group = [writer.submit(record) for record in (learn(2), bad, learn(3))]
    assert "takes text" in group[1].result().answer["refused"]
    gone = {"kind": "labels", "action": "rename", "label": "no such", "to": "x"}
    assert "there is no label" in writer.submit(gone).result().answer["refused"]
    writer.close(snapshot=False)
    assert_same_state(writer_at().store.machine.model, taught(model, [1, 2, 3]))


def test_hot_swap_survives_a_restart(writer_at, model):
    writer = writer_at()
    writer.submit(learn(1, key="a")).result()
    other = online_model()
    estimator_of(other).partial_fit(other.encode(["entirely new"]), [["other model"]])
    other.save(model)
    assert writer.swap(model).result().answer["sequence"] == 3
    writer.submit(learn(2)).result()
    writer.close(snapshot=False)
    expected = taught(model, [2])
    writer = writer_at()
    assert_same_state(writer.store.machine.model, expected)
    assert writer.submit(learn(1, key="a")).result().replayed
    shutil.rmtree(model)
    with pytest.raises(StoppedError, match="not found"):
        writer.swap(model).result()
    assert_same_state(writer.store.machine.model, expected)


def test_a_client_that_has_gone_is_skipped(writer_at, model):
    writer = writer_at()
    with writer.store.machine.read():  # the writer cannot go on to the second record while this copy is read
        writer.submit(learn(1)).result()
        gone, waits = writer.submit(learn(2)), writer.submit(learn(3))
        assert gone.cancel()
    assert waits.result().answer["sequence"] == 3
    assert_same_state(writer.store.machine.model, taught(model, [1, 3]))


def standing():
    """Nice value and policy of the calling thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), os.sched_getscheduler(0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities by thread")
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


@pytest.fixture(params=["before the frame", "after the frame", "in the second copy", "before the log", "in a swap"])
def failing(request, monkeypatch):
    """Lets a writer fail once, as if memory were short at one place or another."""

    def fail(writer):
        machine, log = writer.store.machine, writer.store.log
        owner, name, late = {
            "before the frame": (machine, "apply", False),
            "after the frame": (machine, "apply", True),
            "in the second copy": (machine, "catch_up", False),
            "before the log": (log, "append", False),
            "in a swap": (writer.store, "adopt", False),
        }[request.param]
        real = getattr(owner, name)

        def short(*words, **options):
            monkeypatch.setattr(owner, name, real)
            if late:
                real(*words, **options)
            raise MemoryError

        monkeypatch.setattr(owner, name, short)
        return request.param

    return fail


def test_the_writer_survives_any_error(writer_at, any_model, failing, tmp_path):
    """Clients are answered, learning goes on, and no record that reached the log is lost or counts twice."""
    writer = writer_at()
    writer.submit(learn(0, key="0")).result()
    place = failing(writer)
    taught(any_model, [9]).save(tmp_path / "other")
    swapped = writer.swap(tmp_path / "other") if place == "in a swap" else None
    first, second = writer.submit(learn(1, key="1")), writer.submit(learn(2, key="2"))
    if swapped is not None:
        with pytest.raises(StoppedError):
            swapped.result(30)
    for future in (first, second):
        with contextlib.suppress(StoppedError):
            future.result(30)
    deadline = time.monotonic() + 30
    while writer.trouble and time.monotonic() < deadline and place != "before the log":
        time.sleep(0.01)
    for number in (1, 2, 3):
        writer.submit(learn(number, key=str(number))).result(30)
    assert writer.trouble == ""
    assert writer.gauges()["learning_refused"] == 0
    assert writer.gauges()["learning_recoveries"] == (0 if place == "before the log" else 1)
    expected = taught(any_model, range(4))
    assert_same_state(writer.store.machine.model, expected)
    writer.close(snapshot=False)
    assert_same_state(writer_at().store.machine.model, expected)


def test_the_state_cannot_be_rebuilt_at_once(writer_at, tmp_path, model, monkeypatch):
    """While it cannot, records are refused, the gauges tell, and readers keep their model."""
    writer = writer_at()
    writer.submit(learn(0)).result()
    machine = writer.store.machine
    real = machine.apply

    def short(*words, **options):
        raise MemoryError

    monkeypatch.setattr(machine, "apply", short)
    hidden = (tmp_path / "state" / "models").rename(tmp_path / "hidden")
    with pytest.raises(StoppedError, match="MemoryError"):
        writer.submit(learn(1, key="1")).result(30)
    monkeypatch.setattr(machine, "apply", real)
    with pytest.raises(StoppedError, match="will be tried again"):
        writer.submit(learn(2)).result(30)
    assert writer.gauges()["learning_refused"] == 1
    with machine.read() as front:
        assert_same_state(front, taught(model, [0]))
    hidden.rename(tmp_path / "state" / "models")
    deadline = time.monotonic() + 60
    while writer.trouble and time.monotonic() < deadline:
        time.sleep(0.05)
    assert writer.submit(learn(1, key="1")).result(30).replayed
    assert_same_state(machine.model, taught(model, [0, 1]))


def test_a_thread_for_the_snapshot_is_refused(writer_at, model, monkeypatch):
    writer = writer_at(snapshot_records=1)
    real, refused = threading.Thread.start, []

    def start(thread):
        if thread.name == "snapshot" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    for number in range(5):
        writer.submit(learn(number)).result(30)
    assert refused
    assert writer.trouble == ""
    writer.close()
    assert writer.gauges()["snapshots_failed"] == 1
    assert_same_state(writer_at().store.machine.model, taught(model, range(5)))
