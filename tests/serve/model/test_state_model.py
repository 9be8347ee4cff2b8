"""Random sequences of requests, restarts, kills, faults and power cuts against a plain model of the state.

One sequence in eight kills processes; in the others, a kill is a service that changes no file any more.
``make test`` runs a few sequences, ``make test-model`` thousands. LABELWOOD_SEQUENCES and LABELWOOD_MODEL_SEED choose
otherwise. With LABELWOOD_SHRINK, a sequence that fails is made shorter, which takes minutes.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from injection import Faults
from plain_state import PlainLabel, PlainState, RefusedError
from random_requests import CHANGE, EXAMPLES, KEYS, SAFE, TEXT, request
from scipy.sparse import csr_array
from service_zygote import ServiceChild, Zygote
from serving import LABELS, TEXTS, assert_same_state, online_model, refit_learner, repeat_refit

from labelwood import HashingEncoder, OnlineTree, TextClassifier, load
from labelwood.methods.online.learner import learner_of
from labelwood.serve.state.recovery import restore
from labelwood.serve.state.store import Store, view_of

SEQUENCES = int(os.environ.get("LABELWOOD_SEQUENCES", "12"))
SEED = int(os.environ.get("LABELWOOD_MODEL_SEED", "0"))
DISK_FULL, BROKEN = 28, 5
DAY = 24 * 3600 * 10**6


class World:
    """Models to serve, and the process that forks services."""

    def __init__(self, folder: Path, injector: Path) -> None:
        self.folder = folder
        self.zygote = Zygote(Faults(injector, folder / "none").environment)
        self.injector = injector
        named, other, living = (online_model(name) for name in ("online-tree", "online-forest", "living-tree"))
        encoder = HashingEncoder(n_features=2**12, n_jobs=1)
        marks = csr_array([[1, 0], [0, 1], [1, 1]])
        numbered = TextClassifier(OnlineTree(n_jobs=1, max_leaf=2), encoder).fit(TEXTS[:3], marks)
        self.models: dict[str, tuple[Path, PlainState]] = {}
        for name, model in {"named": named, "forest": other, "numbered": numbered, "living": living}.items():
            model.save(folder / name)
            entries = learner_of(model, owner="test").label_entries()
            labels = [PlainLabel(entry.name, entry.support, seen=True) for entry in entries]
            self.models[name] = folder / name, PlainState(labels, numbered=name == "numbered")
        assert len(LABELS) == len(TEXTS)


class ServiceStates(RuleBasedStateMachine):
    """A service that is driven at random, beside a plain model of its state."""

    world: ClassVar[World]

    @initialize(model=st.sampled_from(["named", "numbered", "forest", "living"]), data=st.data())
    def begin(self, model: str, data: st.DataObject) -> None:
        """Start a service from one of the models."""
        self.folder = Path(tempfile.mkdtemp(dir=self.world.folder))
        self.faults = Faults(self.world.injector, self.folder / "rules")
        self.state, self.numbers = self.folder / "state", itertools.count()
        self.model, plain = self.world.models[model]  # the model directory: what the newest swap put there
        self.first_model = self.model
        self.plain, self.is_full, self.clock = plain.copy(), False, 0
        self.service: ServiceChild | None = None
        self.options = {
            "keep": data.draw(st.integers(1, 3), "keep"),
            "snapshot_records": data.draw(st.sampled_from([1, 3, 1000]), "snapshot_records"),
            "publish": data.draw(st.booleans(), "publish"),
            "forks": data.draw(st.sampled_from([False] * 7 + [True]), "forks"),
        }
        self.start()

    def start(self) -> None:
        """Start the service; it must start, whatever happened before."""
        self.set_faults()
        options = {**self.options, "state": str(self.state), "model": str(self.model)}
        self.service = self.world.zygote.start(self.folder, self.faults, **options)
        self.service.set_clock(self.clock)

    def set_faults(self, *rules: str) -> None:
        """Set rules, besides one that never hits and lets the library watch the state, and the full disk."""
        watch = f"change {self.state}* 100000000 1 kill 0"
        full = [f"create,write,mkdir {self.state}* 0 -1 fail {DISK_FULL}"] if self.is_full else []
        self.faults.set(watch, *full, *rules)

    def send(self, kind: str, contents: Any, key: str | None) -> tuple[int, Any]:
        """Send a request that changes the state."""
        return self.service.ask(*request(kind, contents, key)[:3], **request(kind, contents, key)[3])

    def expect(self, kind: str, contents: Any, key: str | None, status: int, answer: Any) -> None:
        """Compare an answer with that of the plain model, and apply the request there."""
        before = self.plain.copy()
        try:
            wanted = self.plain.ask(kind, contents, key)
        except RefusedError:
            wanted = None
        was_logged = self.plain.sequence > before.sequence
        if self.is_full and was_logged:
            assert status == 507, answer
            self.plain = before
        elif wanted is None:
            assert status == 422, answer
        else:
            assert status == 200, answer
            assert answer == wanted

    @rule(contents=EXAMPLES, key=KEYS)
    def learn(self, contents: Any, key: str | None) -> None:
        """Teach examples, which may be refused."""
        self.expect("learn", contents, key, *self.send("learn", contents, key))

    @rule(contents=CHANGE, key=KEYS)
    def change_label(self, contents: Any, key: str | None) -> None:
        """Change a label, which may be refused."""
        self.expect("labels", contents, key, *self.send("labels", contents, key))

    @rule(actions=st.lists(st.sampled_from(["retire", "restore"]), min_size=1, max_size=2))
    def change_all_labels(self, actions: list[str]) -> None:
        """Retire or restore every label."""
        for action in actions:
            for label in [label.name for label in self.plain.labels[:8]]:
                self.change_label({"action": action, "label": label}, None)

    @rule(batch=st.lists(SAFE, min_size=2, max_size=5))
    def learn_together(self, batch: list[Any]) -> None:
        """Teach with several requests at once: they share frames, in some order."""
        requests = [("learn", contents, f"n{next(self.numbers)}") for contents in batch]
        self.service.begin(*(request(*one) for one in requests))
        self.settle(requests, self.service.answers())

    def settle(self, requests: list[Any], answers: list[tuple[int, Any]]) -> None:
        """Apply requests to the plain model in the order that the service has chosen."""
        if self.is_full:
            assert [status for status, _ in answers] == [507] * len(answers), answers
            return
        assert {status for status, _ in answers} <= {200}, answers
        for one, (_, answer) in sorted(zip(requests, answers, strict=True), key=lambda pair: pair[1][1]["sequence"]):
            assert self.plain.ask(*one) == {**answer, "replayed": False}

    @precondition(lambda self: not self.is_full)
    @rule(
        batch=st.lists(SAFE, min_size=1, max_size=4),
        number=st.integers(0, 40),
        end=st.sampled_from(["kill", "cut 0", "cut 50", "cut -1"]),
        together=st.booleans(),
    )
    def end_under_way(self, batch: list[Any], number: int, end: str, together: bool) -> None:
        """Kill the service or cut the power at one of the next system calls, and send again, as a client would."""
        requests = [("learn", contents, f"n{next(self.numbers)}") for contents in batch]
        self.set_faults(f"change {self.state}* {number} {self.ending(end)}")
        answered: list[Any] = []
        try:
            for group in [requests] if together else [[one] for one in requests]:
                self.service.begin(*(request(*one) for one in group))
                answered += zip(group, self.service.answers(), strict=True)
        except (EOFError, ConnectionResetError, BrokenPipeError):
            pass
        kept = [(one, answer) for one, answer in answered if answer[0] == 200]
        self.settle([one for one, _ in kept], [answer for _, answer in kept])
        self.service.kill()
        self.start()
        for one, _ in kept:  # what was acknowledged is known, and counts once
            self.expect(*one, *self.send(*one))
        doubtful = [one for one in requests if one not in [known for known, _ in kept]]
        self.settle(doubtful, [self.send(*one) for one in doubtful])

    def ending(self, end: str) -> str:
        """The rest of a rule that kills the service or cuts its power; a service within the host must not end it."""
        if self.options["forks"]:
            return f"1 {end}" if end != "kill" else "1 kill 0"
        return f"-1 lose {end.split()[1]}" if end != "kill" else f"-1 fail {BROKEN}"

    @rule(kill=st.booleans())
    def restart(self, kill: bool) -> None:
        """Start again, after a kill or an end in good order."""
        self.service.kill() if kill else self.service.stop()
        self.start()

    @rule()
    def kill_with_a_torn_tail(self) -> None:
        """Start again after a kill during a write to the log."""
        self.service.kill()
        newest = max((self.state / "log").glob("*.log"))
        content = newest.read_bytes()
        newest.write_bytes(content + b"LwFr half of a frame" if content else b"labelwood-l")
        self.start()

    @rule()
    def refit(self) -> None:
        """Train the batch model again; other models have none."""
        status, answer = self.service.refit()
        if self.is_full or not self.is_living():
            assert status == 503, answer
            return
        assert status == 200, answer
        self.plain.refit(answer["last"])
        assert answer["sequence"] == self.plain.sequence

    @precondition(lambda self: not self.is_full)
    @rule(wait=st.floats(0, 0.02))
    def kill_during_a_refit(self, wait: float) -> None:
        """Kill the service while it trains; the refit is not in the log, or it is ended after the next start."""
        self.service.refit(wait=False)
        time.sleep(wait)
        self.service.kill()
        self.start()
        status, answer = self.service.settle()
        assert status == 200
        if answer["sequence"] != self.plain.sequence:
            assert self.is_living()
            self.plain.refit(answer["last"])
        assert answer["sequence"] == self.plain.sequence

    def is_living(self) -> bool:
        """True if the model has a batch model."""
        return self.model == self.world.models["living"][0]

    @rule(name=st.sampled_from(["named", "numbered", "forest", "living"]))
    def swap(self, name: str) -> None:
        """Replace the model; the model that the state began from changes nothing."""
        path, plain = self.world.models[name]
        status, answer = self.service.swap(path)
        if path == self.model:
            assert (status, answer) == (200, {})
        elif self.is_full:
            assert status == 503, answer
        else:
            self.model = path
            self.plain.swap(plain, path)
            assert (status, answer["sequence"]) == (200, self.plain.sequence)

    @rule(full=st.booleans())
    def fill_disk(self, full: bool) -> None:
        """Fill the disk, or make room."""
        self.is_full = full
        self.set_faults()

    @precondition(lambda self: not self.is_full)
    @rule(
        contents=SAFE,
        fault=st.sampled_from(["flush 0 1 fail", "flush 0 1 after", "write 0 1 fail", "write 0 1 after"]),
        stuck=st.booleans(),
        then=st.sampled_from(["again", "kill", "stop"]),
    )
    def disk_error(self, contents: Any, fault: str, stuck: bool, then: str) -> None:
        """Let the disk fail during a write to the log; if the rest cannot be removed either, the record is in doubt."""
        log = f"{self.state}/log/*"
        call, rest = fault.split(" ", 1)
        faults = [f"{call} {log} {rest} {BROKEN}"]
        if stuck:
            faults.append(f"truncate {log} 0 1 fail {BROKEN}")
        self.set_faults(*faults)
        one = ("learn", contents, f"n{next(self.numbers)}")
        status, answer = self.send(*one)
        assert status in ((200, 503, 507) if stuck else (200, 507)), answer  # a new file may have taken the fault
        self.set_faults()
        if status == 200:
            self.settle([one], [(status, answer)])
        if then != "again":
            self.service.kill() if then == "kill" else self.service.stop()
            self.start()
        if status == 503:
            self.settle([one], [self.send(*one)])
        else:
            self.expect(*one, *self.send(*one))

    @rule(days=st.integers(-400, 400))
    def jump(self, days: int) -> None:
        """Let the clock jump."""
        self.clock = days * DAY
        self.service.set_clock(self.clock)

    @rule(text=TEXT, k=st.integers(1, 20))
    def suggest(self, text: str, k: int) -> None:
        """Suggestions are labels that may be suggested, best first."""
        status, answer = self.service.ask("POST", "/suggest", {"text": text, "k": k})
        assert status == 200, answer
        labels = [one["label"] for one in answer["suggestions"]]
        scores = [one["score"] for one in answer["suggestions"]]
        assert len(labels) == len(set(labels)) == min(k, len(self.plain.suggestible()))
        assert set(labels) <= self.plain.suggestible()
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)

    @rule(text=TEXT)
    def look(self, text: str) -> None:
        """All that only reads works, and agrees with the plain model."""
        requests = [
            ("GET", "/labels?limit=10000", None, {}),
            ("GET", "/model", None, {}),
            ("GET", "/metrics", None, {}),
            ("GET", "/readyz", None, {}),
            ("GET", "/healthz", None, {}),
            ("POST", "/explain", {"text": text, "k": 2}, {}),
            ("POST", "/suggest-batch", {"inputs": [{"text": text}] * 2, "k": 3}, {}),
        ]
        self.service.begin(*requests)
        answers = self.service.answers()
        assert [status for status, _ in answers] == [200] * len(requests), answers
        listed, model = answers[0][1], answers[1][1]
        assert listed["total"] == len(self.plain.labels)
        kept = ("label", "state", "support", "merged_into")
        assert [{name: entry[name] for name in kept} for entry in listed["labels"]] == self.plain.entries()
        assert model["labels"] == len(self.plain.labels)
        assert model["service"]["log_sequence"] == self.plain.sequence
        assert model["service"]["examples_learned"] == self.plain.learned
        assert model["service"]["learning_recoveries"] == model["service"]["records_skipped"] == 0

    @rule()
    def restore_beside(self) -> None:
        """The state can be read while the service runs."""
        assert restore(self.state).sequence == self.plain.sequence

    def teardown(self) -> None:
        """The state on disk is that of a model that was taught the same records, and readers can load it."""
        if getattr(self, "service", None) is None:
            return
        self.service.kill()
        machine = restore(self.state)
        assert (machine.sequence, machine.learned) == (self.plain.sequence, self.plain.learned)
        assert_same_state(machine.model, self.taught())
        store = Store(self.state)
        store.publish(store.machine.snapshot())
        store.close()
        assert load(view_of(self.state)).classes_.tolist() == [label.name for label in self.plain.labels]
        shutil.rmtree(self.folder)

    def taught(self) -> Any:
        """The model of the sequence, taught without a service."""
        model = load(self.first_model)
        refit_learner(model)
        for kind, contents in self.plain.records:
            if kind == "model":
                model = load(contents)
                refit_learner(model)
                continue
            learner = learner_of(model, owner="test")
            if kind == "refit":
                repeat_refit(learner)
                repeat_refit(learner) if contents["rows"] else learner.drop_refit(contents["reason"])
            elif kind == "learn":
                rows = model.encode([one["text"] for one in contents])
                learner.partial_fit(rows, [one["labels"] for one in contents])
            else:
                words = [contents["label"], *([contents["to"]] if "to" in contents else [])]
                getattr(learner.labels, contents["action"])(*words)
        return model


@pytest.fixture
def world(injector: Path, tmp_path: Path) -> Any:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else tmp_path) as folder:
        world = World(Path(folder), injector)
        yield world
        world.zygote.close()


@pytest.mark.timeout(24 * 3600)
def test_sequences(world: World, capsys: Any) -> None:
    ServiceStates.world = world
    started = time.monotonic()
    run_state_machine_as_test(
        seed(SEED)(ServiceStates),
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=20,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink] if "LABELWOOD_SHRINK" in os.environ else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    seconds = time.monotonic() - started
    with capsys.disabled():
        print(f"\n{SEQUENCES} sequences of up to 20 steps, no violation, {seconds:.0f} s, seed {SEED}")
