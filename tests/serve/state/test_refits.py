"""Refits of a service: logged, replayed, judged, resumed after a crash."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from serving import LABELS, TEXTS, assert_same_state, learn, online_model, refit_learner, repeat_refit, teach, wait_for

from labelwood import HashingEncoder, LivingTree, TextClassifier, load
from labelwood.methods.online.learner import learner_of
from labelwood.methods.online.living_batch import Batch, TrainingJob, train_batch
from labelwood.serve.state import refits
from labelwood.serve.state.log import read_log
from labelwood.serve.state.recovery import restore
from labelwood.serve.state.refits import RefitOptions
from labelwood.serve.state.store import Store, view_of
from labelwood.serve.state.writer import Writer

ASKED = RefitOptions(when="asked")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    online_model("living-tree").save(tmp_path / "model")
    return tmp_path / "model"


def taught_with_refits(model: Path, steps: list[object]) -> object:
    """The model after examples (numbers) and records of refits ("refit"), without a service."""
    expected = load(model)
    learner = refit_learner(expected)
    for step in steps:
        repeat_refit(learner) if step == "refit" else teach(expected, [step])
    return expected


@pytest.mark.parametrize("process_rows", [0, 10**9], ids=["process", "thread"])
def test_a_refit_is_taken_up_and_replayed(model: Path, writer_at, tmp_path: Path, process_rows: int) -> None:
    writer = writer_at(refits=RefitOptions(when="asked", process_rows=process_rows))
    for number in range(30):
        writer.submit(learn(number)).result()
    result = writer.refit().result(timeout=300)
    assert result.taken, result
    assert result.rows > 18
    writer.submit(learn(30)).result()
    state = writer.store.folder
    assert [frame.records[0].get("action") for frame in read_log(state / "log")][-3:-1] == ["begin", "end"]
    expected = taught_with_refits(model, [*range(30), "refit", "refit", 30])
    assert_same_state(restore(state).model, expected)
    gauges = writer.gauges()
    assert (gauges["refits_taken"], gauges["refit_running"], gauges["batch_rows"]) == (1, 0, result.rows)
    assert gauges["refit_quality_after"] == result.after
    writer.close()
    assert_same_state(restore(state).model, expected)


def test_a_replay_trains_again_what_was_lost(model: Path, writer_at) -> None:
    writer = writer_at(refits=ASKED)
    for number in range(25):
        writer.submit(learn(number)).result()
    assert writer.refit().result(timeout=60).taken
    writer.close(snapshot=False)
    state = writer.store.folder
    for path in (state / "snapshots").iterdir():
        refits.shutil.rmtree(path)
    whole = restore(state)
    (written,) = (state / refits.REFITS).iterdir()
    refits.shutil.rmtree(written)
    assert_same_state(restore(state).model, whole.model)
    assert_same_state(whole.model, taught_with_refits(model, [*range(25), "refit", "refit"]))


def test_a_refit_under_way_goes_on_after_a_crash(model: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "state", model=model)
    for number in range(20):
        store.machine.apply(store.log.append([learn(number)]))
    store.machine.apply(store.log.append([{"kind": "refit", "action": "begin"}]))
    store.machine.apply(store.log.append([learn(20)]))
    store.write_snapshot(store.machine.snapshot())
    store.close()  # as if killed: no end of the refit is in the log
    writer = Writer(Store(tmp_path / "state", model=model), refits=ASKED)
    assert writer.store.machine.refit == 22
    wait_for(lambda: writer.gauges()["refits_taken"] == 1)
    writer.close()
    expected = taught_with_refits(model, [*range(20), "refit", 20, "refit"])
    assert_same_state(restore(tmp_path / "state").model, expected)


def test_a_training_that_fails_is_not_taken_up(model: Path, writer_at, monkeypatch) -> None:
    writer = writer_at(refits=RefitOptions(when="asked", process_rows=0))
    writer.submit(learn(*range(20))).result()
    monkeypatch.setattr(refits.sys, "executable", "/bin/false")
    result = writer.refit().result(timeout=60)
    assert not result.taken
    assert "the training failed" in result.reason
    assert writer.gauges()["refits_not_taken"] == 1
    assert restore(writer.store.folder).refit is None
    assert writer.submit(learn(21)).result().answer["learned"] == 1


def test_a_refit_that_does_worse_is_not_taken_up(tmp_path: Path, writer_at, monkeypatch, caplog) -> None:
    slow = LivingTree(n_jobs=1, online={"max_leaf": 4, "learning_rate": 0.01}, neighbors=0, recent=20)
    encoder = HashingEncoder(n_features=2**12, n_jobs=1)
    TextClassifier(slow, encoder).fit(TEXTS * 3, LABELS * 3).save(tmp_path / "slow")
    writer = writer_at(tmp_path / "slow", refits=ASKED)
    writer.submit(learn(*range(400))).result()
    assert writer.refit().result(timeout=60).taken
    writer.submit(learn(*range(400, 1100))).result()  # the mix learns to trust the batch tree
    first = learner_of(writer.store.machine.model, owner="test")._batch

    def misled(job: TrainingJob, *, n_jobs: int) -> Batch:
        """Every label is taken for another one."""
        Y = job.rows.Y
        wrong = replace(Y, indices=((Y.indices + 1) % Y.n_cols).astype(np.int32))
        return train_batch(replace(job, rows=replace(job.rows, Y=wrong)), n_jobs=n_jobs)

    monkeypatch.setattr(refits, "train_batch", misled)
    result = writer.refit().result(timeout=60)
    assert not result.taken
    assert result.after < result.before
    assert result.reason == f"it does worse on the last {result.judged_rows} rows"
    assert f"refit {result.number} is not taken up: {result.reason}" in caplog.text
    gauges = writer.gauges()
    assert (gauges["refits_taken"], gauges["refits_not_taken"]) == (1, 1)
    assert (gauges["refit_quality_before"], gauges["refit_quality_after"]) == (result.before, result.after)
    kept = learner_of(writer.store.machine.model, owner="test")
    assert kept._batch.until == first.until
    assert_same_state(restore(writer.store.folder).model, writer.store.machine.model)


def test_refits_begin_when_they_are_due(model: Path, writer_at) -> None:
    writer = writer_at(refits=RefitOptions())
    for number in range(60):
        writer.submit(learn(number)).result()
    wait_for(lambda: writer.gauges()["refits_taken"] + writer.gauges()["refits_not_taken"] >= 1)
    with pytest.raises(Exception, match="has no batch model"):
        learner_of(online_model(), owner="test").begin_refit()


def test_a_schedule(model: Path, writer_at) -> None:
    writer = writer_at(refits=RefitOptions(when="asked", seconds=0.2))
    time.sleep(0.3)
    assert writer.gauges()["refits_taken"] == 0  # nothing was learned
    writer.submit(learn(*range(3))).result()
    wait_for(lambda: writer.gauges()["refits_taken"] + writer.gauges()["refits_not_taken"] >= 1)


def test_restore_at_a_time_before_within_and_after_a_refit(model: Path, tmp_path: Path) -> None:
    clock = iter(range(10**15, 10**16, 10**6))
    store = Store(tmp_path / "state", model=model, clock=lambda: next(clock))
    steps: list[object] = [*range(20), "refit", 20, 21, "refit", 22]
    times = []
    for step in steps:
        if step != "refit":
            record = learn(step)
        elif store.machine.refit is None:
            record = {"kind": "refit", "action": "begin"}
        else:  # written by nobody: trained again
            record = {"kind": "refit", "action": "end", "fingerprint": "none"}
        store.machine.apply(store.log.append([record]))
        times.append(store.machine.time)
    store.close()
    for count in (20, 21, 23, 24, 25):
        machine = restore(tmp_path / "state", at=times[count - 1])
        assert_same_state(machine.model, taught_with_refits(model, steps[:count]))


def test_another_model_ends_the_refit(model: Path, writer_at, tmp_path: Path) -> None:
    writer = writer_at(refits=ASKED)
    writer.submit(learn(*range(20))).result()
    online_model().save(tmp_path / "other")
    asked = writer.refit()
    writer.swap(tmp_path / "other").result()
    assert asked.exception(timeout=60) is not None or asked.result() is not None
    assert writer.store.machine.refit is None
    with pytest.raises(Exception, match="has no batch model"):
        writer.refit().result(timeout=60)


def test_readers_get_the_new_model(model: Path, writer_at) -> None:
    writer = writer_at(refits=ASKED, publish=True)
    writer.submit(learn(*range(30))).result()
    assert writer.refit().result(timeout=60).taken
    state = writer.store.folder
    wait_for(lambda: learner_facts(state)["refits"] == learner_facts_of(writer)["refits"])
    text = ["word3_1 word3_2 word3_0 word3_1 noise1"]
    found, expected = load(view_of(state)), writer.store.machine.model
    np.testing.assert_allclose(found.predict_topk(text, 3)[1], expected.predict_topk(text, 3)[1], rtol=1e-4)


def learner_facts(state: Path) -> dict:
    return load(view_of(state)).classifier_.describe()


def learner_facts_of(writer: Writer) -> dict:
    return writer.store.machine.model.classifier_.describe()
