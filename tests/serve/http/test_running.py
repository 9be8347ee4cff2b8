"""A service that starts, runs in several processes, takes another model up, raises alarms and ends."""

from __future__ import annotations

import signal
import socket
import threading
import time

import httpx
import pytest
from serving import LABELS, TEXTS, assert_same_state, example, online_model, wait_for

from labelwood import HashingEncoder, LinearTree, OnlineTree, TextClassifier, load
from labelwood.cli import main
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.recovery import restore


def test_graceful_shutdown(serving, model, tmp_path):
    service = serving(model)
    answers: list[int] = []

    def teach():
        for number in range(200):
            try:
                answers.append(service.learn(number).status_code)
            except httpx.TransportError:
                return

    thread = threading.Thread(target=teach)
    thread.start()
    while len(answers) < 20:
        time.sleep(0.01)
    code, said = service.stop()
    thread.join()
    assert (code, said.count("\n")) == (0, 1), said
    done = answers.count(200)
    expected = load(model)
    for number in range(done):
        one = example(number)
        estimator_of(expected).partial_fit(expected.encode([one["text"]]), [one["labels"]])
    state = model.with_name("model.state")
    assert_same_state(restore(state).model, expected)
    out = tmp_path / "restored"
    assert main(["restore", str(state), "-o", str(out)]) == 0
    assert_same_state(load(out), expected)
    assert main(["restore", str(state), "--at", "1999-01-01", "-o", str(out)]) == 1


@pytest.mark.parametrize("learns", [True, False])
def test_hot_swap_without_a_failed_request(serving, model, learns):
    service = serving(model, *([] if learns else ["--no-learn"]))
    statuses: list[int] = []
    ended = threading.Event()

    def ask():
        with httpx.Client(base_url=service.facts["url"], timeout=30) as client:
            while not ended.is_set():
                statuses.append(client.post("/suggest", json={"text": "a dog"}).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    other = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**12, n_jobs=1)).fit(
        TEXTS, [["swapped"]] * len(TEXTS)
    )
    other.save(model)
    if learns:
        service.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 30
    while service.suggest("a dog", k=1)[0]["label"] != "swapped":
        assert time.monotonic() < deadline
    ended.set()
    thread.join()
    assert set(statuses) == {200}


def test_several_processes(serving, any_model):
    service = serving(any_model, "--workers", 2, "--snapshot-seconds", 0.2)
    with httpx.Client(base_url=service.facts["url"], timeout=30) as other:
        assert other.post("/suggest", json={"text": "a dog", "k": 1}).json()["suggestions"][0]["label"] == "pets"
        taught = other.post("/learn", json={"examples": [{"text": "zebra stripes", "labels": ["zoo"]}] * 5})
        assert taught.json()["learned"] == 5
        assert any(entry["label"] == "zoo" for entry in other.get("/labels").json()["labels"])
        assert other.post("/learn", json={"examples": []}).status_code == 422
        deadline = time.monotonic() + 30
        while other.post("/suggest", json={"text": "zebra"}).json()["suggestions"][0]["label"] != "zoo":
            assert time.monotonic() < deadline, "the readers did not take the snapshot up"
            time.sleep(0.1)
        while service.metric("examples_learned") != 5:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert other.get("/model").json()["learns"]
    code, said = service.stop()
    assert code == 0, said
    assert restore(any_model.with_name("model.state")).learned == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_refits_without_a_failed_request(serving, tmp_path, workers):
    """Suggestions go on while batch models are trained and taken up; /model and /metrics tell of them."""
    online_model("living-tree").save(tmp_path / "model")
    service = serving(tmp_path / "model", "--workers", workers, "--refit-seconds", 0.1, "--snapshot-seconds", 60)
    statuses: list[int] = []
    ended = threading.Event()

    def ask():
        with httpx.Client(base_url=service.facts["url"], timeout=30) as client:
            while not ended.is_set():
                statuses.append(client.post("/suggest", json={"text": "a dog"}).status_code)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(3):
        before = service.metric("refits_taken") + service.metric("refits_not_taken")
        assert service.learn(*range(20 * turn, 20 * turn + 20)).status_code == 200
        wait_for(lambda before=before: service.metric("refits_taken") + service.metric("refits_not_taken") > before)
    wait_for(lambda: service.metric("refit_running") == 0)

    def facts():
        return service.http.get("/model").json()["facts"]

    # Processes that answer have the model of the last refit that was taken up, before the next snapshot is due.
    wait_for(lambda: facts()["batch_rows"] == service.metric("batch_rows") > 18)
    ended.set()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}
    assert service.metric("refits_taken") >= 1
    if workers == 1:
        told = facts()
        assert told["batch_age"] == service.metric("batch_age_rows")
        for name in ("before", "after"):
            assert told["last_refit"][name] == pytest.approx(service.metric(f"refit_quality_{name}"))


def test_drift_alarm(serving, model):
    service = serving(model, "--drift-window", 4, "--drift-alarm", 0.5)
    known = [{"text": text, "labels": labels} for text, labels in zip(TEXTS, LABELS, strict=True)]
    service.http.post("/learn", json={"examples": known})
    assert (service.metric("drift_alarm"), service.metric("drift_precision_at_1")) == (0, 1)
    new = [{"text": f"unheard {n}", "labels": [f"of {n}"]} for n in range(4)]
    service.http.post("/learn", json={"examples": new})
    assert (service.metric("drift_alarm"), service.metric("drift_new_label_rate")) == (1, 1)


def test_serving_needs_a_model(labelwood_error, tmp_path):
    assert "not found" in labelwood_error("serve", tmp_path / "none")
    TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, LABELS).save(tmp_path / "still")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "in use" in labelwood_error("serve", tmp_path / "still", "--port", port)


@pytest.fixture
def labelwood_error(capsys):
    def run(*words: object) -> str:
        assert main([str(word) for word in words]) == 1
        return capsys.readouterr().err

    return run
