"""State directories: the same state after any restart, at any time, from any sound snapshot."""

from __future__ import annotations

import fcntl

import pytest
from serving import LABELS, TEXTS, assert_same_state, learn, taught

from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.recovery import restore, snapshots
from labelwood.serve.state.store import Store


@pytest.mark.parametrize("snapshot", [False, True])
def test_restarts_change_nothing(writer_at, any_model, snapshot):
    for start in range(0, 60, 20):
        writer = writer_at()
        for number in range(start, start + 20, 4):
            writer.submit(learn(*range(number, number + 4))).result()
        writer.close(snapshot=snapshot)
    writer = writer_at()
    assert_same_state(writer.store.machine.model, taught(any_model, range(60)))
    assert writer.store.machine.learned == 60


def test_a_truncated_snapshot_is_skipped(writer_at, tmp_path, any_model):
    for start in (0, 10, 20):
        writer = writer_at()
        writer.submit(learn(*range(start, start + 10))).result()
        writer.close()
    newest = snapshots(tmp_path / "state")[-1]
    assert len(snapshots(tmp_path / "state")) == 2
    largest = max((newest / "model").glob("*.npy"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-100])
    writer = writer_at()
    assert_same_state(writer.store.machine.model, taught(any_model, range(30)))
    assert "damaged" in writer.store.damaged[0]
    writer.submit(learn(30)).result()
    writer.close()
    assert [path.name for path in snapshots(tmp_path / "state")][-1] == f"{5:020d}"


@pytest.mark.parametrize("damage", ["flip", "empty", "gone"])
def test_a_damaged_state_file_is_skipped(writer_at, tmp_path, model, damage):
    for start in (0, 10):
        writer = writer_at()
        writer.submit(learn(*range(start, start + 10))).result()
        writer.close()
    path = snapshots(tmp_path / "state")[-1] / "state.json"
    whole = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(b"" if damage == "empty" else whole.replace(b'"learned": 20', b'"learned": 21'))
    assert_same_state(writer_at().store.machine.model, taught(model, range(20)))


def test_no_sound_snapshot_and_no_whole_log_is_an_error(writer_at, tmp_path):
    for start in (0, 10, 20):
        writer = writer_at()
        writer.submit(learn(*range(start, start + 10))).result()
        writer.close()
    for path in snapshots(tmp_path / "state"):
        (path / "state.json").unlink()
    with pytest.raises(FormatError, match="no sound snapshot comes before"):
        restore(tmp_path / "state")


def test_restore_at_a_time(writer_at, tmp_path, model):
    hour = 0

    def clock():
        return hour

    writer = writer_at(clock=clock)
    for hour in range(10, 20):
        writer.submit(learn(hour)).result()
        if hour == 14:
            writer.close()  # with a snapshot
            writer = writer_at(clock=clock)
    for at in (10, 12, 14, 15, 19, 100):
        assert_same_state(restore(tmp_path / "state", at=at).model, taught(model, range(10, min(at, 19) + 1)))
    assert restore(tmp_path / "state", at=5).learned == 0
    writer.close()  # a second snapshot: the log before the first one is removed
    with pytest.raises(FormatError, match="no state at that time"):
        restore(tmp_path / "state", at=12)


def test_one_writer_only(writer_at, tmp_path, model):
    writer_at()
    with pytest.raises(LabelwoodError, match="another service is writing"):
        Store(tmp_path / "state", model=model)


def test_state_without_a_beginning(tmp_path):
    with pytest.raises(LabelwoodError, match="no model to start from"):
        Store(tmp_path / "state")
    with pytest.raises(FormatError, match="there is no state"):
        restore(tmp_path / "nothing")


def test_only_models_that_learn(tmp_path, still_model):
    with pytest.raises(LabelwoodError, match="online-tree"):
        Store(tmp_path / "state", model=still_model)


def test_drift_is_the_same_after_a_restart(writer_at):
    writer = writer_at()
    for text, labels in zip(TEXTS * 5, LABELS * 5, strict=True):
        writer.submit({"kind": "learn", "examples": [{"text": text, "labels": labels}]}).result()
    writer.submit(learn(0)).result()
    before = writer.store.machine.drift
    assert 0.5 < before.precision < 1
    assert before.new_label_rate == pytest.approx(2 / 31)
    writer.close(snapshot=False)
    assert writer_at().store.machine.drift.state() == before.state()


def test_one_writer_only_without_the_lock_file(writer_at, tmp_path, model):
    writer_at()
    (tmp_path / "state" / "lock").unlink()
    with pytest.raises(LabelwoodError, match="another service is writing"):
        Store(tmp_path / "state", model=model)


def test_an_earlier_version_sees_the_lock(writer_at, tmp_path):
    """Earlier versions lock the file only."""
    writer_at()
    with (tmp_path / "state" / "lock").open("r+b") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_start_that_fails_releases_the_locks(tmp_path, model):
    with pytest.raises(LabelwoodError, match="no model to start from"):
        Store(tmp_path / "state")
    Store(tmp_path / "state", model=model).close()


def test_names_that_are_refused_now_are_escaped_when_an_old_log_is_replayed(model, tmp_path):
    """An earlier version logged and acknowledged them: the service starts, and nothing that was taught is lost."""
    store = Store(tmp_path / "state", model=model)
    store.log.append([
        {"kind": "learn", "examples": [{"text": "a wolf howls", "labels": ["wild\x1b[2J", "a\x7fb"]}] * 5},
        {"kind": "labels", "action": "rename", "label": "a\x7fb", "to": "c\x00d"},
        {"kind": "learn", "examples": [{"text": "a wolf howls", "labels": ["c\x00d"]}]},
    ])  # fmt: skip
    store.close()
    for _ in range(2):
        again = Store(tmp_path / "state")
        entries = {entry.name: entry.support for entry in estimator_of(again.machine.model).label_entries()}
        assert entries["wild\\x1b[2J"] == 5
        assert entries["c\\x00d"] == 6
        again.write_snapshot(again.machine.snapshot())
        again.close()
