"""Services of several processes start from any state, on a full disk as well, and leave nothing behind."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from serving import assert_same_state, example, taught, wait_for

from labelwood.serve.state.recovery import restore

WORKERS = ("--workers", 2, "--snapshot-seconds", 0.2)


def patch(service, action, label):
    answer = service.http.patch("/labels", json={"action": action, "label": label})
    assert answer.status_code == 200, answer.text


def test_every_label_is_retired_and_restored(serving, any_model):
    """Readers start from a model that has nothing to suggest, and the API can undo it."""
    service = serving(any_model, "--snapshot-seconds", 0.2)
    labels = [entry["label"] for entry in service.http.get("/labels").json()["labels"]]
    for label in labels:
        patch(service, "retire", label)
    service.kill()
    service = serving(any_model, *WORKERS)
    assert service.suggest("tax law") == []
    patch(service, "restore", "law")
    wait_for(lambda: [one["label"] for one in service.suggest("tax law")] == ["law"])
    code, said = service.stop()
    assert code == 0
    assert "is started again" not in said


@pytest.mark.parametrize("has_view", [False, True])
def test_a_start_on_a_full_disk(serving, model, tmp_path, faults, has_view):
    """Also with a torn tail: learning is refused with 507 and all else works; with room again, learning goes on."""
    state = tmp_path / "state"
    service = serving(model, "--state", state, *(WORKERS if has_view else ()))
    for number in range(5):
        assert service.learn(number).status_code == 200
    service.kill()
    (log,) = (state / "log").glob("*1.log")
    newest = max((state / "log").glob("*.log"))
    with newest.open("ab") as file:
        file.write(b"LwFr half of a frame")
    assert log.exists()
    faults.set(f"create,write,mkdir {state}* 0 -1 fail 28")
    service = serving(model, "--state", state, *WORKERS, environment=faults.environment)
    assert service.learn(5).status_code == 507
    assert "No space left" in service.learn(5).json()["detail"]
    assert service.suggest("tax law", k=1)[0]["label"] == "law"
    for path in ("/labels", "/model", "/metrics", "/healthz", "/readyz"):
        assert service.http.get(path).status_code == 200
    wait_for(lambda: service.http.get("/readyz").json()["learning"])
    assert service.metric("learning_refused") == 1
    faults.set()
    assert service.learn(5).status_code == 200
    one = example(5)
    wait_for(lambda: one["labels"][0] in [found["label"] for found in service.suggest(one["text"], k=30)])
    service.kill()
    assert_same_state(restore(state).model, taught(model, range(6)))


def directory_of(service):
    """The private directory of a service, as its processes have it mapped; other services may run beside it."""
    pid = service.process.pid
    family = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    mapped = "".join(Path(f"/proc/{one}/maps").read_text() for one in family)
    (found,) = {Path(path) for path in re.findall(r"/\S*/labelwood-serve-[^/\s]+", mapped)}
    return found


def test_the_directories_of_killed_services_are_removed(serving, model):
    killed = serving(model, *WORKERS)
    left = directory_of(killed)
    assert os.stat(left).st_mode & 0o077 == 0
    killed.kill()
    assert left.exists()
    running = serving(model, *WORKERS)
    assert not left.exists()
    own = directory_of(running)
    other = serving(model, "--state", model.with_name("other"), *WORKERS)
    assert own.exists(), "the directory of a service that runs"
    others = directory_of(other)
    assert running.stop()[0] == other.stop()[0] == 0
    assert not own.exists()
    assert not others.exists()
