"""Fuzz target: models of other tools with changed bytes, JSON values and files; see run.py.

Every input is either imported, and then its model answers with finite scores, or refused in one line.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import numpy as np
from mutate import spoil_bytes, spoil_json

from labelwood.errors import LabelwoodError
from labelwood.importing import FORMATS, import_model

MODELS = Path(__file__).parents[1] / "tests" / "importing" / "models"
N_FEATURES, MOST_FEATURES = 30, 10**6


def make(folder: Path):
    """A function from a generator to whether its input was accepted."""
    files = {tool: _files(MODELS / tool) for tool in sorted(FORMATS)}
    rows = np.random.default_rng(0).random((4, N_FEATURES), np.float32)
    home = folder / "model"

    def run(random: Random) -> bool:
        tool = random.choice(sorted(files))
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        content = dict(files[tool])
        for _ in range(random.choice((1, 1, 1, 2))):
            _spoil(random, content)
        for path, data in content.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_bytes(data)
        try:
            model = import_model(home, format=random.choice((None, tool)))
        except FileNotFoundError:
            return False
        except LabelwoodError as error:
            assert "\n" not in str(error), error
            return False
        if model.n_features_in_ <= MOST_FEATURES:
            wide = np.zeros((4, model.n_features_in_), np.float32)
            wide[:, :N_FEATURES] = rows[:, : model.n_features_in_]
            labels, scores = model.predict_topk(wide, min(3, model.n_labels_))
            assert np.isfinite(scores).all(), scores
            assert set(labels.ravel().tolist()) <= {*model.classes_.tolist(), -1}, labels
        return True

    return run


def _files(home: Path) -> dict[Path, bytes]:
    return {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def _spoil(random: Random, content: dict[Path, bytes]) -> None:
    if not content:
        return
    path = random.choice(sorted(content))
    kind = random.randrange(12)
    if kind == 0:
        del content[path]
    elif kind == 1:
        content[path] = content[random.choice(sorted(content))]
    elif path.suffix == ".json" and kind < 8:
        try:
            value = json.loads(content[path])
        except ValueError:
            return
        content[path] = json.dumps(spoil_json(random, value)).encode("utf-8", "replace")
    else:
        content[path] = spoil_bytes(random, content[path])
