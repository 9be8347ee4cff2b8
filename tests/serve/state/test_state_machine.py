"""Readers never wait for learning and never see half of a frame; both copies of the model stay equal."""

from __future__ import annotations

import threading

import pytest
from serving import assert_same_state, example, online_model

from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.frames import Frame
from labelwood.serve.state.state_machine import StateMachine


@pytest.fixture(params=["online-tree", "online-forest"])
def machine(request, tmp_path):
    machine = StateMachine(online_model(request.param), tmp_path, sequence=1, time=0)
    machine.share(n_jobs=1)
    return machine


def frame(machine, *records):
    return Frame(machine.sequence + 1, 0, list(records))


def learn(*examples):
    return {"kind": "learn", "examples": list(examples)}


def assert_copies_equal(machine):
    """Compare the front copy with the other one, which an empty frame brings to the front."""
    machine.catch_up()
    with machine.read() as front:
        machine.apply(frame(machine, learn()))
        with machine.read() as other:
            assert other is not front
            assert_same_state(other, front)


def test_a_reader_does_not_wait_for_a_frame(machine):
    many = frame(machine, learn(*(example(number) for number in range(1000))))
    applying = threading.Thread(target=machine.apply, args=(many,))
    applying.start()
    seen = []
    while applying.is_alive():
        with machine.read() as front:
            seen.append("label 3" in front.classes_.tolist())
    applying.join()
    assert seen.count(False) > 1
    with machine.read() as front:
        assert "label 3" in front.classes_.tolist()
    assert_copies_equal(machine)


def test_a_copy_is_not_changed_while_it_is_read(machine):
    with machine.read() as front:
        machine.apply(frame(machine, learn({"text": "x", "labels": ["x"]})))
        catching_up = threading.Thread(target=machine.catch_up)
        catching_up.start()
        catching_up.join(0.2)
        assert catching_up.is_alive()
        assert "x" not in front.classes_.tolist()
        with machine.read() as newer:
            assert "x" in newer.classes_.tolist()
    catching_up.join(10)
    assert not catching_up.is_alive()
    assert_copies_equal(machine)


def test_readers_see_whole_frames_only(machine):
    """Every frame adds two labels, one before and one after a change of a label: no reader counts an odd number."""
    ended, counts, wrong = threading.Event(), [], []

    def read():
        while not ended.is_set():
            with machine.read() as front:
                count = estimator_of(front).n_labels_
                found = front.predict_topk(["text"], k=100)[0][0].tolist()
                counts.append(count)
                if count % 2 or sum(label is not None for label in found) != count:
                    wrong.append(count)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(40):
        first = learn({"text": f"text {number} a", "labels": [f"{number} a"]})
        renamed = {"kind": "labels", "action": "rename", "label": f"{number} a", "to": f"{number} c"}
        second = learn({"text": f"text {number} b", "labels": [f"{number} b"]})
        machine.apply(frame(machine, first, renamed, second))
        machine.catch_up()
    ended.set()
    for reader in readers:
        reader.join()
    assert len(set(counts)) > 1
    assert not wrong
    assert_copies_equal(machine)


def test_a_snapshot_does_not_change(machine):
    machine.apply(frame(machine, learn(*(example(number) for number in range(20)))))
    taken = machine.snapshot()
    arrays = {name: array.copy() for name, array in taken.arrays.items()}
    for _ in range(3):
        machine.apply(frame(machine, learn(*(example(number) for number in range(20, 40)))))
    assert all((taken.arrays[name] == array).all() for name, array in arrays.items())
    assert taken.counters["learned"] == 20
