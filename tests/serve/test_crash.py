"""Kill -9 at random moments of a learning load: nothing acknowledged is lost, nothing counts twice.

``make test-crash`` kills 200 times; LABELWOOD_KILLS and LABELWOOD_CRASH_SEED choose otherwise.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Forked, assert_same_state, example, online_model, refit_learner, repeat_refit, teach

from labelwood import load
from labelwood.serve.state.recovery import restore

KILLS = int(os.environ.get("LABELWOOD_KILLS", "8"))
SEED = int(os.environ.get("LABELWOOD_CRASH_SEED", "0"))
CLIENTS = 4


class Load:
    """Clients that teach numbered examples, each request with a key, and remember what was acknowledged."""

    def __init__(self) -> None:
        self.next_number = 0
        self.acknowledged: dict[int, list[int]] = {}  # record of the log to the examples it taught
        self.in_doubt: list[list[int]] = []
        self.replayed = 0
        self.may_refuse = False  # readers answer 503 once the process that learns is gone
        self._lock = threading.Lock()

    def take(self, chooser: random.Random) -> list[int]:
        with self._lock:
            count = chooser.choice([1, 1, 1, 2, 5])
            numbers = list(range(self.next_number, self.next_number + count))
            self.next_number += count
            return numbers

    def send(self, client: httpx.Client, numbers: list[int]) -> bool:
        """Send once; whether it was acknowledged."""
        body = {"examples": [example(number) for number in numbers]}
        try:
            answer = client.post("/learn", json=body, headers={"Idempotency-Key": f"from-{numbers[0]}"})
        except httpx.TransportError:
            with self._lock:
                self.in_doubt.append(numbers)
            return False
        if answer.status_code == 503 and self.may_refuse:
            with self._lock:
                self.in_doubt.append(numbers)
            return False
        assert answer.status_code == 200, answer.text
        with self._lock:
            sequence = answer.json()["sequence"]
            self.replayed += answer.json()["replayed"]
            assert self.acknowledged.setdefault(sequence, numbers) == numbers, "two requests in one record"
        return True

    def run(self, url: str, seed: int) -> list[threading.Thread]:
        def work(client_number: int) -> None:
            chooser = random.Random(1000 * seed + client_number)
            with httpx.Client(base_url=url, timeout=30) as client:
                while self.send(client, self.take(chooser)):
                    pass

        threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        return threads


class Expected:
    """A model that is taught, without a service, what the records of the log say."""

    def __init__(self, model: Path) -> None:
        self.model = load(model)
        self.learner = refit_learner(self.model)
        self.taught = 1  # the first record is the model
        self.refits = 0

    def follow(self, load_: Load, sequence: int) -> None:
        """Apply all records up to a number; those that no client knows begin and end refits in turn."""
        for record in range(self.taught + 1, sequence + 1):
            if record in load_.acknowledged:
                teach(self.model, load_.acknowledged[record])
            else:
                repeat_refit(self.learner)
                self.refits += 1
        self.taught = sequence

    def settle(self, state: Path, load_: Load) -> None:
        """Follow the service, to which nobody talks, until no refit is under way or due; compare the states."""
        while True:
            machine = restore(state)
            self.follow(load_, machine.sequence)
            assert_same_state(machine.model, self.model)
            if machine.refit is None and not self.learner.refit_due:
                return
            time.sleep(0.02)


def check_all_counted(load_: Load, expected: Expected) -> None:
    """Every record is one that was acknowledged or one of a refit; every example is in one record."""
    assert max(load_.acknowledged, default=1) <= expected.taught
    assert len(load_.acknowledged) + expected.refits == expected.taught - 1
    numbers = [number for numbers in load_.acknowledged.values() for number in numbers]
    assert sorted(numbers) == list(range(load_.next_number)), "lost or doubled"


@pytest.mark.timeout(3600)
def test_kill_at_random_moments(any_model: Path, capsys: Any) -> None:
    kill_at_random_moments(any_model, KILLS, capsys)


@pytest.mark.timeout(3600)
def test_kill_at_random_moments_with_workers(tmp_path: Path, capsys: Any) -> None:
    online_model("living-tree").save(tmp_path / "model")
    kill_at_random_moments(tmp_path / "model", max(2, KILLS // 10), capsys, workers=2)


def kill_at_random_moments(model: Path, kills: int, capsys: Any, **options: Any) -> None:
    chooser, state = random.Random(SEED), model.with_name("model.state")
    load_, expected = Load(), Expected(model)
    load_.may_refuse = bool(options)
    resent = starts_killed = amid_refits = 0
    for kill in range(kills):
        service = Forked(model, snapshot_seconds=chooser.choice([0.05, 0.2, 60.0]), **options)
        try:
            service.wait()
            # What nobody answered is sent again, as a client would; then every record is accounted for.
            for numbers in [load_.in_doubt.pop(0) for _ in range(len(load_.in_doubt))]:
                resent += 1
                assert load_.send(service.http, numbers)
            expected.settle(state, load_)
            check_all_counted(load_, expected)
            if options:
                assert service.http.get("/readyz").status_code == 200  # a reader has started
            for probe in () if options else (kill, kill + 7):
                text = example(probe)["text"]
                labels, scores = expected.model.predict_topk([text], k=3)
                found = service.suggest(text, k=3)
                assert [one["label"] for one in found] == labels[0].tolist()
                assert [one["score"] for one in found] == scores[0].tolist()
            threads = load_.run(service.facts["url"], seed=kill)
            time.sleep(chooser.uniform(0.0, 2.0 if options else 0.6))
        finally:
            service.kill()
        for thread in threads:
            thread.join()
        amid_refits += restore(state).refit is not None
        if chooser.random() < 0.2:  # and some starts are killed before they are through
            _kill_while_starting(model, chooser.uniform(0.0, 0.3), options)
            starts_killed += 1
    with capsys.disabled():
        print(
            f"\n{expected.learner.method_name} {options or ''}: {kills} kills under load, {amid_refits} of them during "
            f"a refit, and {starts_killed} while starting: {expected.taught - 1} records with "
            f"{expected_count(load_, expected.taught)} examples and {expected.refits} of refits checked, {resent} "
            f"requests sent again, of which {load_.replayed} had been logged; state identical every time, 0 lost, "
            "0 doubled"
        )


def expected_count(load_: Load, taught: int) -> int:
    return sum(len(numbers) for record, numbers in load_.acknowledged.items() if record <= taught)


def _kill_while_starting(model: Path, seconds: float, options: dict[str, Any]) -> None:
    service = Forked(model, **options)
    time.sleep(seconds)
    service.kill()


def test_full_disk(model: Path, tmp_path: Path) -> None:
    """On a disk of 2 MB: learning is refused with 507, suggesting goes on, and all that was acknowledged is there."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = Path(__file__).with_name("full_disk.py")
    mount = f"mount -t tmpfs -o size=2m tmpfs {disk} && exec {sys.executable} {script} {model} {disk}"
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here: unshare -rm is not allowed")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mount], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "refused with 507" in done.stdout
