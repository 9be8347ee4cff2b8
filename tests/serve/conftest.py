"""Small models, and services that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import LABELS, TEXTS, Running, online_model

from labelwood import LinearTree, TextClassifier
from labelwood.serve.state.log import Clock, wall_clock
from labelwood.serve.state.refits import RefitOptions
from labelwood.serve.state.store import Store
from labelwood.serve.state.writer import Writer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    online_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(params=["online-tree", "online-forest", "living-tree"])
def any_model(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A model of each method that learns."""
    online_model(request.param).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def still_model(tmp_path: Path) -> Path:
    """A model that does not learn."""
    TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS * 3, LABELS * 3).save(tmp_path / "still")
    return tmp_path / "still"


@pytest.fixture
def writer_at(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Writer]]:
    """Opens a state directory for the model of the test, or for another; closes what is still open at the end."""
    path = request.getfixturevalue("any_model" if "any_model" in request.fixturenames else "model")
    opened: list[Writer] = []

    def start(model: Path = path, *, clock: Clock = wall_clock, **options: Any) -> Writer:
        options.setdefault("refits", RefitOptions(when="asked"))
        opened.append(Writer(Store(tmp_path / "state", model=model, clock=clock), **options))
        return opened[-1]

    yield start
    for writer in opened:
        writer.close(snapshot=False)


@pytest.fixture
def serving() -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*words: object, **options: Any) -> Running:
        started.append(Running(*words, **options))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.kill()
