"""A small online model of texts, and clients of a service that runs in another process."""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from labelwood import HashingEncoder, LivingTree, OnlineForest, OnlineTree, TextClassifier, load
from labelwood.cli.main import parser_of
from labelwood.methods.online.learner import StreamLearner, learner_of
from labelwood.methods.online.living_batch import train_batch
from labelwood.methods.text_classifier import Model, estimator_of

TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due", "the court decided", "guilty by law"]
LABELS = [["pets"], ["pets"], ["law"], ["law", "money"], ["court", "law"], ["law"]]


def online_model(method: str = "online-tree") -> TextClassifier:
    tree = OnlineTree(n_jobs=1, max_leaf=4)
    forest = OnlineForest(n_trees=2, n_jobs=1, tree={"max_leaf": 4})
    living = LivingTree(n_jobs=1, online={"max_leaf": 4}, refit_rows=25, refit_growth=0.1, recent=20)
    classifier = {"online-tree": tree, "online-forest": forest, "living-tree": living}[method]
    return TextClassifier(classifier, HashingEncoder(n_features=2**12, n_jobs=1)).fit(TEXTS * 3, LABELS * 3)


def example(number: int, *, n_labels: int = 12) -> dict[str, Any]:
    """Example ``number``, always the same; every 17th example has a new label."""
    random = np.random.default_rng(number)
    topic = int(random.integers(0, n_labels))
    words = [f"word{topic}_{int(random.integers(0, 5))}" for _ in range(4)] + [f"noise{int(random.integers(0, 50))}"]
    labels = [f"label {topic}"] + ([f"rare {number}"] if number % 17 == 0 else [])
    return {"text": " ".join(words), "labels": labels}


def learn(*numbers: int, key: str | None = None) -> dict[str, Any]:
    """The record of the log that teaches numbered examples."""
    record = {"kind": "learn", "examples": [example(number) for number in numbers]}
    return record if key is None else {**record, "key": key, "digest": repr(numbers)}


def taught(path: Path, numbers: Iterable[int]) -> Model:
    """The model that has learned the numbered examples one by one, without a service."""
    model = load(path)
    refit_learner(model)
    for number in numbers:
        teach(model, [number])
    return model


def teach(model: Model, numbers: Iterable[int]) -> None:
    """Teach numbered examples in one call."""
    examples = [example(number) for number in numbers]
    rows = model.encode([one["text"] for one in examples])
    learner_of(model, owner="test").partial_fit(rows, [one["labels"] for one in examples])


def refit_learner(model: Model) -> StreamLearner:
    """The estimator of a model that trains again only when it is told to, as in a service."""
    learner = learner_of(model, owner="test")
    learner.defers_refits = True
    return learner


def repeat_refit(learner: StreamLearner) -> None:
    """Do what the next record of a refit does: begin one, or end the one under way."""
    job = learner.refit_under_way
    if job is None:
        learner.begin_refit()
    else:
        learner.end_refit(train_batch(job, n_jobs=1))


def assert_same_state(one: Model, other: Model) -> None:
    """Assert that all arrays of two models are equal bit for bit, and their names and counters too."""
    (facts, arrays), (expected_facts, expected) = one.to_saved(), other.to_saved()
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name, strict=True)
    assert _lasting(facts["facts"]) == _lasting(expected_facts["facts"])
    assert facts["labels"] == expected_facts["labels"]
    assert estimator_of(one).classes_.tolist() == estimator_of(other).classes_.tolist()


def _lasting(facts: Any) -> Any:
    """Facts without the rows and the time of the last call and the memory held, which are not part of the state."""
    if isinstance(facts, list):
        return [_lasting(one) for one in facts]
    if not isinstance(facts, dict):
        return facts
    passing = ("rows_learned", "trained", "bytes")
    return {name: _lasting(value) for name, value in facts.items() if name not in passing}


def assert_flags_have_tests(command: str, tests: dict[str, str], unseen: Iterable[str], folder: Path) -> None:
    """Assert that every flag of a command's parser is in ``unseen``, or is given in the test that is named for it."""
    assert set(parser_of(command, []).flags()) - {"-h", "--help"} == {*tests, *unseen}
    for flag, test in tests.items():
        file, name = test.split("::")
        tree = ast.parse((folder / file).read_text("utf-8"))
        bodies = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        shared = [node for node in tree.body if isinstance(node, ast.Assign)]  # values that several tests share
        assert f"'{flag}'" in "".join(map(ast.unparse, [bodies[name], *shared])), test


def wait_for(holds: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until something holds; fail after some time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.02)


class Client:
    """Requests to a running service."""

    http: httpx.Client

    def learn(self, *numbers: int, key: str | None = None) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.http.post("/learn", json={"examples": [example(n) for n in numbers]}, headers=headers)

    def suggest(self, text: str, **options: Any) -> list[dict[str, Any]]:
        answer = self.http.post("/suggest", json={"text": text, **options})
        assert answer.status_code == 200, answer.text
        return answer.json()["suggestions"]

    def metric(self, name: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(f"labelwood_{name} ")).split()[1])


class Running(Client):
    """A service in its own process, started from the command line."""

    def __init__(
        self, *words: object, environment: dict[str, str] | None = None, before: str = "", command: str = "serve"
    ) -> None:
        """``before`` is Python that the process runs before it starts the service."""
        program = before + "import sys; from labelwood.cli import main; sys.exit(main())"
        line = [sys.executable, "-c", program, command, *map(str, words), "--port", "0", "--json"]
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(self.process.communicate()[1])
        self.facts = json.loads(said)
        self.http = httpx.Client(base_url=self.facts["url"], timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.http.close()

    def stop(self) -> tuple[int, str]:
        """Stop the service with SIGTERM; return its exit code and its stderr."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        self.http.close()
        return self.process.returncode, said


class Forked(Client):
    """A service forked from a process that has imported everything; it starts in a tenth of the time."""

    def __init__(self, model: Path, **options: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["labelwood.serve.processes", "serving"])
        self._hears, tells = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(model, options, tells))
        self.process.start()
        tells.close()

    def wait(self) -> None:
        """Wait until the service answers."""
        self.facts = self._hears.recv()
        self.http = httpx.Client(base_url=self.facts["url"], timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self._hears.close()
        if hasattr(self, "http"):
            self.http.close()


def _serve(model: Path, options: dict[str, Any], tells: Any) -> None:
    from labelwood.serve.processes import Options, serve

    serve(Options(model=model, port=0, **options), tells.send)
