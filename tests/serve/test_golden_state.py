"""A state directory that an earlier version wrote is served with the answers of that version.

The state has a snapshot after record 20, and a log with learned examples, keys, changes of labels and a refused record.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from labelwood.serve.state.recovery import restore, snapshots
from labelwood.serve.state.store import Store
from labelwood.serve.state.writer import Writer

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "answers.json").read_text())


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(GOLDEN / "state", tmp_path / "state"))


def assert_as_written(machine):
    counters = machine.snapshot().counters
    assert counters == {name: EXPECTED[name] for name in counters}
    labels, scores = machine.model.predict_topk(EXPECTED["asked"], k=3)
    assert labels.tolist() == EXPECTED["labels"]
    # instruction sets round differently
    np.testing.assert_allclose(scores, EXPECTED["scores"], rtol=1e-5, atol=1e-7)


def test_from_the_snapshot(folder):
    assert_as_written(restore(folder))


def test_from_the_whole_log(folder):
    shutil.rmtree(snapshots(folder)[0])
    assert_as_written(restore(folder))


def test_a_state_that_names_no_model_belongs_to_the_one_it_is_opened_with(folder, model):
    store = Store(folder, model=model)
    assert store.machine.sequence == EXPECTED["sequence"]
    assert store.holds(model)
    store.close()


def test_learning_goes_on(folder):
    writer = Writer(Store(folder))
    assert_as_written(writer.store.machine)
    key, digest, answer = EXPECTED["keys"][0]
    repeated = writer.submit({"kind": "learn", "examples": [], "key": key, "digest": digest}).result()
    assert (repeated.answer, repeated.replayed) == (answer, True)
    fresh = writer.submit({"kind": "learn", "examples": [{"text": "new words", "labels": ["new"]}]}).result()
    assert fresh.answer == {"learned": 1, "new_labels": 1, "sequence": EXPECTED["sequence"] + 1}
    writer.close()
    assert restore(folder).learned == EXPECTED["learned"] + 1
