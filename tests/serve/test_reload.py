"""Another model while the service runs or was stopped: which model is served, and how a failure shows."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from serving import TEXTS, example, wait_for

from labelwood import HashingEncoder, LinearTree, LivingTree, OnlineForest, OnlineTree, TextClassifier
from labelwood.serve.state.store import restore

_CLASSIFIERS = {
    "online-tree": lambda: OnlineTree(n_jobs=1),
    "online-forest": lambda: OnlineForest(n_trees=2, n_jobs=1),
    "living-tree": lambda: LivingTree(n_jobs=1),
    "linear-tree": lambda: LinearTree(n_jobs=1),
}


def save_other(path, label="swapped", method="online-tree"):
    """Save a model that knows one label."""
    encoder = HashingEncoder(n_features=2**12, n_jobs=1)
    TextClassifier(_CLASSIFIERS[method](), encoder).fit(TEXTS, [[label]] * len(TEXTS)).save(path)


def best(service):
    return service.suggest("a dog", k=1)[0]["label"]


@pytest.mark.parametrize("queue", [1, 1000])
def test_many_hangups_while_16_clients_learn(serving, model, queue):
    service = serving(model, "--queue", queue)
    ended = threading.Event()
    statuses: set[int] = set()

    def teach(number):
        with httpx.Client(base_url=service.facts["url"], timeout=20) as client:
            while not ended.is_set():
                statuses.add(client.post("/learn", json={"examples": [example(number)]}).status_code)

    threads = [threading.Thread(target=teach, args=(number,), daemon=True) for number in range(16)]
    for thread in threads:
        thread.start()
    for round_ in range(200):
        if round_ % 50 == 0:
            save_other(model, f"model {round_}")
        service.process.send_signal(signal.SIGHUP)
        time.sleep(0.005)
    assert service.http.get("/healthz", timeout=20).status_code == 200
    ended.set()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert statuses <= {200, 429}
    wait_for(lambda: "model 150" in {entry["label"] for entry in service.http.get("/labels").json()["labels"]})
    assert service.http.post("/learn", json={"examples": [example(1)]}).status_code == 200
    code, said = service.stop()
    assert code == 0, said
    assert "Traceback" not in said


# Each method with one process and with several, after a kill and after an end, taught and never taught.
@pytest.mark.parametrize(
    ("method", "workers", "killed", "taught"),
    [
        ("online-tree", 1, False, 0), ("online-tree", 2, True, 1),
        ("online-forest", 1, True, 1), ("online-forest", 2, False, 0),
        ("living-tree", 1, True, 0), ("living-tree", 2, False, 1),
        ("linear-tree", 1, False, 1), ("linear-tree", 2, True, 0),
    ],
)  # fmt: skip
def test_a_model_trained_again_is_served(serving, model, method, workers, killed, taught):
    service = serving(model, "--workers", workers)
    assert best(service) == "pets"
    for number in range(taught):
        assert service.learn(number).status_code == 200
    service.kill() if killed else service.stop()
    save_other(model, method=method)
    service = serving(model, "--workers", workers)
    assert best(service) == "swapped"
    _, said = service.stop()
    told = "1 example" if taught else "0 examples"
    assert "not used" in said if method == "linear-tree" else f"learned {told} so far" in said
    assert str(model) in said


def test_a_model_taken_up_at_the_start_is_the_one_after_a_kill(serving, model):
    serving(model).stop()
    save_other(model)
    service = serving(model)
    service.http.post("/learn", json={"examples": [{"text": "zebra", "labels": ["zoo"]}] * 3})
    service.kill()
    service = serving(model)
    assert service.suggest("zebra", k=1)[0]["label"] == "zoo"
    state = restore(model.with_name("model.state"))
    assert state.learned == 3


def test_what_was_learned_stays_while_the_model_is_the_same(serving, model, tmp_path):
    service = serving(model)
    service.http.post("/learn", json={"examples": [{"text": "zebra", "labels": ["zoo"]}] * 3})
    service.process.send_signal(signal.SIGHUP)  # nothing to take up: the model is the one in use
    time.sleep(1.5)
    assert service.suggest("zebra", k=1)[0]["label"] == "zoo"
    service.stop()
    shutil.copytree(model, tmp_path / "copy")
    shutil.rmtree(model)
    (tmp_path / "copy").rename(model)
    service = serving(model)
    assert service.suggest("zebra", k=1)[0]["label"] == "zoo"


@pytest.mark.parametrize("words", [(), ("--no-learn",), ("--workers", 2)])
def test_a_failed_reload_is_visible_until_one_succeeds(serving, model, tmp_path, words):
    service = serving(model, *words)
    ready = service.http.get("/readyz").json()
    assert (ready["status"], ready["model"]) == ("ready", "")
    assert service.metric("reload_failed") == 0
    damaged = tmp_path / "damaged"
    save_other(damaged)
    array = max(damaged.glob("*.npy"), key=lambda path: path.stat().st_size)
    sound = array.read_bytes()
    array.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    model.rename(tmp_path / "before")
    damaged.rename(model)
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: service.metric("reload_failed") == 1)
    reason = "its log says why" if "--workers" in words else "checksum"
    wait_for(lambda: reason in service.http.get("/readyz").json()["model"])
    assert service.http.get("/readyz").json()["status"] == "ready"
    assert best(service) == "pets"
    save_other(model)
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: best(service) == "swapped")
    wait_for(lambda: service.metric("reload_failed") == 0)
    wait_for(lambda: service.http.get("/readyz").json()["model"] == "")
    _, said = service.stop()
    assert "the model in use is kept" in said
    assert "checksum" in said


def test_a_hangup_while_starting_does_not_end_the_service(model):
    program = """
import os, signal, sys
import labelwood.serve.processes as processes
found = processes.load
def load(path):
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGHUP)
    return found(path)
processes.load = load
from labelwood.cli import main
sys.exit(main())
"""
    command = [sys.executable, "-c", program, "serve", str(model), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        facts = json.loads(process.stdout.readline())
        assert httpx.get(facts["url"] + "healthz").status_code == 200
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize("words", [(), ("--no-learn",), ("--workers", 2)])
def test_nothing_is_left_behind_after_an_explanation(serving, model, words):
    service = serving(model, *words)
    for _ in range(3):
        assert service.http.post("/explain", json={"text": "a dog barks"}).status_code == 200
    code, said = service.stop()
    assert code == 0
    assert "leak" not in said
