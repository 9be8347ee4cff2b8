"""State directories: the same state after any restart, at any time, from any sound snapshot."""

from __future__ import annotations

import shutil

import pytest
from serving import LABELS, TEXTS, assert_same_state, example, online_model

from labelwood import load
from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.model_views import from_saved
from labelwood.serve.state.store import Store, capture, restore, snapshots
from labelwood.serve.state.writer import KeyReusedError, Learner, StoppedError


def learn(*numbers, key=None):
    record = {"kind": "learn", "examples": [example(number) for number in numbers]}
    return record if key is None else {**record, "key": key, "digest": repr(numbers)}


def taught(model_path, numbers):
    """The model that learned the examples one by one, without any service."""
    model = load(model_path)
    for number in numbers:
        one = example(number)
        estimator_of(model).partial_fit(model.encode([one["text"]]), [one["labels"]])
    return model


@pytest.fixture
def learner_at(tmp_path, model):
    """Opens the state directory; closes what is still open at the end."""
    opened = []

    def start(**options):
        clock = {"clock": options.pop("clock")} if "clock" in options else {}
        learner = Learner(Store(tmp_path / "state", model=model, **clock), **options)
        opened.append(learner)
        return learner

    yield start
    for learner in opened:
        if learner._thread.is_alive():
            learner.close(snapshot=False)


@pytest.mark.parametrize("patience", [0.0, 60.0])  # every group is overdue, or none
@pytest.mark.parametrize("snapshot", [False, True])
def test_restarts_change_nothing(learner_at, model, snapshot, patience):
    for start in range(0, 60, 20):
        learner = learner_at(patience_seconds=patience)
        for number in range(start, start + 20, 4):
            learner.submit(learn(*range(number, number + 4))).result()
        learner.close(snapshot=snapshot)
    learner = learner_at()
    expected = taught(model, range(60))
    assert_same_state(learner.store.replica.model, expected)
    with learner.view.read() as front:
        assert_same_state(front, expected)
    assert learner.store.replica.learned == 60


def test_both_copies_stay_the_same(learner_at, model):
    learner = learner_at()
    futures = [learner.submit(learn(number)) for number in range(50)]
    futures.append(learner.submit({"kind": "labels", "action": "retire", "label": "law", "to": None}))
    futures += [learner.submit(learn(number)) for number in range(50, 60)]
    assert [future.result().answer["sequence"] for future in futures] == list(range(2, 63))
    learner.close(snapshot=False)
    expected = taught(model, range(50))
    estimator_of(expected).labels.retire("law")
    for number in range(50, 60):
        one = example(number)
        estimator_of(expected).partial_fit(expected.encode([one["text"]]), [one["labels"]])
    for copy in learner.view._copies:
        assert_same_state(copy, expected)


def test_keys_count_once_across_restarts(learner_at, model):
    learner = learner_at()
    first = learner.submit(learn(1, key="a")).result()
    again = learner.submit(learn(1, key="a")).result()
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answer == first.answer
    learner.close(snapshot=False)
    learner = learner_at()  # from the log
    assert learner.submit(learn(1, key="a")).result().replayed
    learner.submit(learn(2, key="b")).result()
    learner.close()
    learner = learner_at()  # from a snapshot
    assert learner.submit(learn(1, key="a")).result().answer == first.answer
    with pytest.raises(KeyReusedError):
        learner.submit(learn(3, key="a")).result()
    assert_same_state(learner.store.replica.model, taught(model, [1, 2]))


def test_the_same_key_twice_in_one_flush(learner_at, model):
    learner = learner_at()
    futures = [learner.submit(learn(number % 3, key=str(number % 3))) for number in range(30)]
    assert sum(future.result().replayed for future in futures) == 27
    assert_same_state(learner.store.replica.model, taught(model, range(3)))


def test_a_refused_record_changes_nothing_then_and_later(learner_at, model):
    learner = learner_at()
    learner.submit(learn(1)).result()
    bad = {"kind": "learn", "examples": [{"features": {"1": 1.0}, "labels": ["x"]}]}
    group = [learner.submit(record) for record in (learn(2), bad, learn(3))]
    assert "takes text" in group[1].result().answer["refused"]
    gone = {"kind": "labels", "action": "rename", "label": "no such", "to": "x"}
    assert "there is no label" in learner.submit(gone).result().answer["refused"]
    learner.close(snapshot=False)
    assert_same_state(learner_at().store.replica.model, taught(model, [1, 2, 3]))


def test_a_truncated_snapshot_is_passed_over(learner_at, tmp_path, model):
    for start in (0, 10, 20):
        learner = learner_at()
        learner.submit(learn(*range(start, start + 10))).result()
        learner.close()
    newest = snapshots(tmp_path / "state")[-1]
    assert len(snapshots(tmp_path / "state")) == 2
    largest = max((newest / "model").glob("*.npy"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-100])
    learner = learner_at()
    assert_same_state(learner.store.replica.model, taught(model, range(30)))
    assert "damaged" in learner.store.damaged[0]
    learner.submit(learn(30)).result()
    learner.close()
    assert [path.name for path in snapshots(tmp_path / "state")][-1] == f"{5:020d}"


@pytest.mark.parametrize("damage", ["flip", "empty", "gone"])
def test_a_damaged_state_file_is_passed_over(learner_at, tmp_path, model, damage):
    for start in (0, 10):
        learner = learner_at()
        learner.submit(learn(*range(start, start + 10))).result()
        learner.close()
    path = snapshots(tmp_path / "state")[-1] / "state.json"
    whole = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(b"" if damage == "empty" else whole.replace(b'"learned": 20', b'"learned": 21'))
    assert_same_state(learner_at().store.replica.model, taught(model, range(20)))


def test_no_sound_snapshot_and_no_whole_log_is_an_error(learner_at, tmp_path):
    for start in (0, 10, 20):
        learner = learner_at()
        learner.submit(learn(*range(start, start + 10))).result()
        learner.close()
    for path in snapshots(tmp_path / "state"):
        (path / "state.json").unlink()
    with pytest.raises(FormatError, match="no sound snapshot comes before"):
        restore(tmp_path / "state")


def test_restore_at_a_time(learner_at, tmp_path, model):
    hour = 0

    def clock():
        return hour

    learner = learner_at(clock=clock, snapshot_seconds=1e9)
    for hour in range(10, 20):
        learner.submit(learn(hour)).result()
        if hour == 14:
            learner._write_snapshot(learner._capture())
    for at in (10, 12, 14, 15, 19, 100):
        assert_same_state(restore(tmp_path / "state", at=at).model, taught(model, range(10, min(at, 19) + 1)))
    assert restore(tmp_path / "state", at=5).learned == 0
    learner._write_snapshot(learner._capture())  # the first is no longer needed, nor is the log before it
    with pytest.raises(FormatError, match="no state at that time"):
        restore(tmp_path / "state", at=12)


def test_hot_swap_survives_a_restart(learner_at, tmp_path, model):
    learner = learner_at()
    learner.submit(learn(1, key="a")).result()
    other = online_model()
    estimator_of(other).partial_fit(other.encode(["entirely new"]), [["other model"]])
    other.save(model)
    assert learner.swap(model).result().answer["sequence"] == 3
    learner.submit(learn(2)).result()
    learner.close(snapshot=False)
    expected = taught(model, [2])
    learner = learner_at()
    assert_same_state(learner.store.replica.model, expected)
    assert learner.submit(learn(1, key="a")).result().replayed
    shutil.rmtree(model)
    with pytest.raises(StoppedError, match="not found"):
        learner.swap(model).result()
    assert_same_state(learner.store.replica.model, expected)


def test_what_is_captured_stays(learner_at, model):
    learner = learner_at()
    learner.submit(learn(*range(20))).result()
    captured = capture(learner.store.replica)
    for _ in range(
        4
    ):  # an answer comes before the writer has changed its second copy: the last one proves the third
        learner.submit(learn(*range(20))).result()
    assert_same_state(from_saved(captured.manifest, captured.arrays), taught(model, range(20)))


def test_who_stopped_waiting_is_passed_over(learner_at, model):
    learner = learner_at()
    with learner.view.read():  # the writer cannot finish the first while this copy is read
        learner.submit(learn(1)).result()
        gone, waits = learner.submit(learn(2)), learner.submit(learn(3))
        assert gone.cancel()
    assert waits.result().answer["sequence"] == 3
    assert_same_state(learner.store.replica.model, taught(model, [1, 3]))


def test_one_writer_only(learner_at, tmp_path, model):
    learner_at()
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


def test_drift_is_the_same_after_a_restart(learner_at):
    learner = learner_at()
    for text, labels in zip(TEXTS * 5, LABELS * 5, strict=True):
        learner.submit({"kind": "learn", "examples": [{"text": text, "labels": labels}]}).result()
    learner.submit(learn(0)).result()
    before = learner.store.replica.drift
    assert 0.5 < before.precision < 1
    assert before.new_label_rate == pytest.approx(2 / 31)
    learner.close(snapshot=False)
    assert learner_at().store.replica.drift.state() == before.state()
