"""Readers never wait for learning and never see half of it; models that are replaced are taken up."""

from __future__ import annotations

import threading
import time

import pytest
from serving import LABELS, TEXTS, assert_same_state, online_model

from labelwood import LinearTree, TextClassifier
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.model_views import FollowedView, LiveView, copy_of, packed_for_reading


def teach(model, text, label):
    """Teach a label; the step that does it once more."""
    rows = model.encode([text])

    def step(tree):
        tree.partial_fit(rows, [[label]])

    step(estimator_of(model))
    return step


def test_copies_are_equal_and_separate():
    model = online_model()
    other = copy_of(model)
    assert_same_state(other, model)
    teach(other, "new", "new")
    assert estimator_of(model).n_labels_ + 1 == estimator_of(other).n_labels_


def test_reading_goes_on_while_a_batch_is_learned():
    model = online_model()
    view = LiveView(model, copy_of(model), n_jobs=1)
    inside, finish = threading.Event(), threading.Event()

    def slow(model):
        first = teach(model, "first half", "first")
        inside.set()
        assert finish.wait(10)
        return None, [first, teach(model, "second half", "second")]

    writer = threading.Thread(target=lambda: (view.teach(slow), view.catch_up()))
    writer.start()
    assert inside.wait(10)
    with view.read() as front:  # neither waits nor sees the first half
        assert "first" not in estimator_of(front).classes_.tolist()
        front.predict_topk(["first half"], k=1)
    finish.set()
    writer.join()
    with view.read() as front:
        assert front.predict_topk(["second half"], k=1)[0].tolist() == [["second"]]
    assert_same_state(*view._copies)


def test_the_writer_waits_for_readers_of_the_copy_it_changes():
    model = online_model()
    view = LiveView(model, copy_of(model), n_jobs=1)
    with view.read() as front:
        view.teach(lambda model: (None, [teach(model, "x", "x")]))
        writer = threading.Thread(target=view.catch_up)
        writer.start()
        writer.join(0.2)
        assert writer.is_alive()
        assert "x" not in estimator_of(front).classes_.tolist()
        with view.read() as newer:
            assert "x" in estimator_of(newer).classes_.tolist()
    writer.join(10)
    assert_same_state(*view._copies)


def test_readers_see_whole_batches_only():
    """Every batch adds two labels; no reader ever counts an odd number."""
    model = online_model()
    view, ended = LiveView(model, copy_of(model), n_jobs=1), threading.Event()
    odd, reads = [], []

    def read():
        while not ended.is_set():
            with view.read() as front:
                count = estimator_of(front).n_labels_
                found = front.predict_topk(["batch"], k=100)[0][0].tolist()
                reads.append(count)
                if count % 2 or sum(label is not None for label in found) != count:
                    odd.append(count)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(40):

        def both(model, number=number):
            first = teach(model, f"batch {number} a", f"{number} a")
            time.sleep(0.001)
            return None, [first, teach(model, f"batch {number} b", f"{number} b")]

        view.teach(both)
        view.catch_up()
    ended.set()
    for reader in readers:
        reader.join()
    assert len(set(reads)) > 1
    assert not odd


def test_a_model_that_is_replaced_is_taken_up(still_model):
    view = FollowedView(still_model, n_jobs=1)
    try:
        with view.read() as old:
            pass
        other = TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, [[*labels, "more"] for labels in LABELS])
        other.save(still_model)
        assert view.look() or "more" in estimator_of(view._model).classes_.tolist()
        with view.read() as new:
            assert "more" in estimator_of(new).classes_.tolist()
        assert old.predict_topk(["tax"], k=1)[0].tolist() == [["law"]]  # whoever still reads the old one may
        (still_model / "manifest.json").write_text("{}")
        assert not view.look()
        with view.read() as kept:
            assert kept is new
    finally:
        view.close()


@pytest.mark.parametrize("text", TEXTS)
def test_the_packed_model_answers_alike(text):
    model = online_model()
    labels, scores = model.predict_topk([text], k=3)
    packed_labels, packed_scores = packed_for_reading(model).predict_topk([text], k=3)
    assert labels.tolist() == packed_labels.tolist()
    assert packed_scores == pytest.approx(scores, rel=1e-5)
