"""The writer: records count once, are applied in their order, and are refused alike on every replay."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import assert_same_state, example, learn, online_model, taught

from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.writer import KeyReusedError, StoppedError, stand_back


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
