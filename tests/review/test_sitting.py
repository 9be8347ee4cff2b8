"""Decisions: a fold of the log that survives restarts, undo, other people, and texts that change."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the review page needs labelwood[serve]")

from labelwood.errors import FormatError, LabelwoodError
from labelwood.review.documents import Documents
from labelwood.review.queue import Queue
from labelwood.review.sitting import Sitting
from labelwood.serve.state.writer import KeyReusedError

KEYS = itertools.count()
DOCUMENTS = Documents(["1", "2", "3"], ["a dog", "a cat", "tax law"])


@pytest.fixture
def sitting_at(tmp_path):
    opened = []

    def start(documents=DOCUMENTS, **options):
        opened.append(Sitting(tmp_path / "state", documents, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def decided(sitting, *steps, who="anna"):
    for document, action, *label in steps:
        sitting.decide(document, action, who=who, key=str(next(KEYS)), label=label[0] if label else None)
    return sitting


def test_decisions_survive_a_restart(sitting_at):
    one = decided(sitting_at(clock=lambda: 5), ("1", "accept", "pets"), ("1", "reject", "law"), ("1", "done"))
    assert one.of("1").labels == ["pets"]
    one.close()
    again = sitting_at()
    found = again.of("1")
    assert (found.marks, found.who, found.time) == ({"pets": "accept", "law": "reject"}, "anna", 5)
    assert (again.n_done, [document for document, _ in again.done()]) == (1, ["1"])


def test_undo_takes_back_own_decisions_only(sitting_at):
    sitting = decided(sitting_at(), ("1", "accept", "pets"), ("1", "done"))
    decided(sitting, ("2", "accept", "pets"), who="bert")
    assert sitting.undo(who="anna", key="u1").action == "done"
    assert (sitting.n_done, sitting.is_done("1")) == (0, False)
    assert sitting.undo(who="anna", key="u2").label == "pets"
    assert sitting.undo(who="anna", key="u3") is None
    assert sitting.of("1").marks == {}
    assert sitting.of("2").labels == ["pets"]
    assert sitting.undo(who="anna", key="u2").label == "pets", "sent again, it takes nothing more back"


def test_undo_leaves_what_another_person_said_of_the_same_label(sitting_at):
    sitting = decided(sitting_at(), ("1", "accept", "pets"))
    decided(sitting, ("1", "reject", "pets"), who="bert")
    sitting.undo(who="anna", key="u")
    assert sitting.of("1").marks == {"pets": "reject"}


def test_a_key_counts_once(sitting_at):
    sitting = sitting_at()
    for _ in range(2):
        sitting.decide("1", "accept", who="anna", key="same", label="pets")
    sitting.close()
    again = sitting_at()
    again.decide("1", "accept", who="anna", key="same", label="pets")
    assert again.of("1").marks == {"pets": "accept"}
    assert again.undo(who="anna", key="back").label == "pets"
    assert again.undo(who="anna", key="another") is None, "it was written once"


def test_a_key_with_other_contents_is_refused(sitting_at):
    """What is not written is not acknowledged."""
    sitting = decided(sitting_at(), ("2", "accept", "law"))
    sitting.decide("1", "accept", who="anna", key="same", label="pets")
    sitting.undo(who="anna", key="back")
    for start_again in (False, True):
        if start_again:
            sitting.close()
            sitting = sitting_at()
        for who, document, action, label in (
            ("anna", "1", "reject", "pets"), ("anna", "2", "accept", "pets"), ("anna", "1", "accept", "law"),
            ("bert", "1", "accept", "pets"), ("anna", "1", "done", None),
        ):  # fmt: skip
            with pytest.raises(KeyReusedError):
                sitting.decide(document, action, who=who, key="same", label=label)
            with pytest.raises(KeyReusedError):
                sitting.decide(document, action, who=who, key="back", label=label)
        for who, key in (("anna", "same"), ("bert", "back")):
            with pytest.raises(KeyReusedError):
                sitting.undo(who=who, key=key)
    assert (sitting.of("1").marks, sitting.of("2").marks, sitting.n_done) == ({}, {"law": "accept"}, 0)


def test_decisions_about_a_changed_text_do_not_count(sitting_at):
    decided(sitting_at(), ("1", "done"), ("2", "done")).close()
    changed = sitting_at(Documents(["1", "3"], ["a wolf", "tax law"]))
    assert (changed.outdated, changed.n_done, list(changed.done())) == (2, 0, [])


def test_one_process_writes(sitting_at):
    sitting_at()
    with pytest.raises(LabelwoodError, match="another labelwood review is writing here"):
        sitting_at()


def test_a_torn_tail_loses_nothing_acknowledged_and_damage_is_refused(sitting_at, tmp_path):
    decided(sitting_at(), ("1", "accept", "pets"), ("2", "accept", "pets")).close()
    (log,) = (tmp_path / "state" / "log").glob("*.log")
    whole = log.read_bytes()
    log.write_bytes(whole + b"LwFr half a frame")
    torn = sitting_at()
    assert torn.of("2").labels == ["pets"]
    torn.close()
    log.write_bytes(whole.replace(b"accept", b"axcept", 1))
    with pytest.raises(FormatError, match="the log is damaged"):
        sitting_at()


@pytest.mark.parametrize(("action", "label"), [("accept", None), ("done", "pets")])
def test_a_decision_has_what_it_needs(sitting_at, action, label):
    with pytest.raises(LabelwoodError, match="take a label; done takes none"):
        sitting_at().decide("1", action, who="anna", key="k", label=label)


ACTION = st.sampled_from(["accept", "reject", "clear", "done", "undo"])
STEP = st.tuples(st.sampled_from(["anna", "bert"]), st.sampled_from(["1", "2"]), ACTION, st.sampled_from(["x", "y"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=12))
def test_any_sequence_equals_a_plain_replay(tmp_path_factory, steps):
    """The marks equal those of a list of steps from which undone ones are struck."""
    folder = tmp_path_factory.mktemp("sitting")
    sitting, kept = Sitting(folder, DOCUMENTS), []
    for number, (who, document, action, label) in enumerate(steps):
        if action == "undo":
            sitting.undo(who=who, key=str(number))
            mine = [place for place, step in enumerate(kept) if step[0] == who]
            if mine:
                kept.pop(mine[-1])
            continue
        sitting.decide(document, action, who=who, key=str(number), label=None if action == "done" else label)
        kept.append((who, document, action, label))
    sitting.close()
    again, in_use = Sitting(folder, DOCUMENTS), Counter()
    for document in ("1", "2"):
        marks = {label: action for _, about, action, label in kept if about == document and action != "done"}
        wanted = {label: action for label, action in marks.items() if action != "clear"}
        assert again.of(document).marks == sitting.of(document).marks == wanted
        assert again.is_done(document) == any(step[1:3] == (document, "done") for step in kept)
        in_use.update(label for label, action in wanted.items() if action == "accept")
    assert dict(again.in_use) == dict(sitting.in_use) == dict(in_use)
    assert again.n_done == sitting.n_done == sum(map(again.is_done, ("1", "2")))
    again.close()


def queue_of(sitting, doubts=(0.1, 0.9, 0.5)):
    return Queue(DOCUMENTS, sitting, lambda: np.array(doubts, np.float32))


def test_the_next_document(sitting_at):
    sitting = sitting_at()
    queue = queue_of(sitting)
    first, second = queue.next("anna", "doubt"), queue.next("bert", "doubt")
    assert {first, second} == {"2", "3"}, "the doubtful ones; nobody gets what another has open"
    assert queue.next("anna", "order") == first, "a document stays open until it is done"
    decided(sitting, (first, "done"))
    assert queue.next("anna", "order") == "1"
    queue.skip("anna", "1")
    assert queue.next("anna", "order") == "1", "nothing else is left"
    decided(sitting, ("1", "done"), (second, "done"))
    assert queue.next("anna", "order") is None
    assert queue.people() == ["bert"]


def test_skipped_documents_come_last(sitting_at):
    queue, seen = queue_of(sitting_at()), []
    for _ in range(4):
        seen.append(queue.next("anna", "order"))
        queue.skip("anna", seen[-1])
    assert seen == ["1", "2", "3", "1"]


def test_random_is_an_order_that_stays(sitting_at):
    sitting = sitting_at()
    assert queue_of(sitting).next("anna", "random") == queue_of(sitting).next("bert", "random")


def test_people_are_listed_while_others_come(sitting_at):
    queue, errors, listed = queue_of(sitting_at()), [], threading.Event()
    for number in range(20_000):
        queue.take(f"person {number}", "1")

    def arrive():
        for number in itertools.count():
            queue.take(f"late person {number}", "1")
            if listed.is_set():
                return

    def list_people():
        try:
            for _ in range(30):
                queue.people()
        except RuntimeError as error:
            errors.append(error)
        listed.set()

    threads = [threading.Thread(target=work) for work in (arrive, list_people)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert errors == []


def test_people_who_are_gone_are_forgotten(sitting_at, monkeypatch):
    queue, now = queue_of(sitting_at()), [0.0]
    monkeypatch.setattr("labelwood.review.queue.time.monotonic", lambda: now[0])
    assert queue.next("anna", "order") == "1"
    queue.skip("anna", "1")
    now[0] = 1799.0
    assert (queue.next("bert", "order"), queue.people()) == ("2", ["anna", "bert"])
    now[0] = 1801.0
    assert (queue.next("clara", "order"), queue.people()) == ("1", ["bert", "clara"])
    now[0] = 4000.0
    assert queue.next("anna", "order") == "1", "what she skipped is forgotten with her"
