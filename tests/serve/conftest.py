"""Small models, and services that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import LABELS, TEXTS, Running, online_model

from labelwood import LinearTree, TextClassifier


@pytest.fixture
def model(tmp_path: Path) -> Path:
    online_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def still_model(tmp_path: Path) -> Path:
    """A model that does not learn."""
    TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS * 3, LABELS * 3).save(tmp_path / "still")
    return tmp_path / "still"


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
