"""Checkpoints: killed at any moment, a training goes on to the same bytes and repeats next to nothing."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from labelwood import CraftForest, FormatError, LabelwoodError, LinearTree, OnlineForest

TRAINING = """
import logging, sys
import numpy as np
from labelwood import LinearTree
from labelwood.data import load

logging.basicConfig(stream=sys.stderr, format="%(message)s")
logging.getLogger("labelwood").setLevel(logging.DEBUG)
folder, resume = sys.argv[1], sys.argv[2] == "resume"
dataset = load(folder + "/rows.npz")
model = LinearTree(n_trees=2, arity=4, max_leaf=10, C=8.0, tolerance=0.01, max_passes=100, n_jobs=1)
model.fit(dataset.X, dataset.Y, checkpoint=folder + "/checkpoint", resume=resume)
model.save(folder + "/model")
"""


@pytest.fixture
def folder(tmp_path, many_labels):
    from labelwood.data import Dataset, save
    from labelwood.sparse import from_scipy

    X, Y = many_labels
    save(tmp_path / "rows.npz", Dataset(from_scipy(X), from_scipy(Y)))
    return tmp_path


def command(folder, word):
    return [sys.executable, "-c", TRAINING, str(folder), word]


def units_of(log, state):
    return re.findall(rf"^unit (\S+): {state}$", log, re.MULTILINE)


def trained_arrays(folder: Path):
    return {path.name: path.read_bytes() for path in (folder / "model").glob("*.npy")}


def test_killed_at_five_moments_it_ends_with_the_same_bytes(folder, tmp_path_factory):
    """One worker: each kill costs the unit that was under way, nothing that was finished."""
    whole = tmp_path_factory.mktemp("whole")
    (whole / "rows.npz").symlink_to(folder / "rows.npz")
    with subprocess.Popen(command(whole, "no"), stderr=subprocess.PIPE, text=True) as process:
        seen = [(time.monotonic(), line) for line in process.stderr]
    assert process.returncode == 0
    moments = [moment for moment, line in seen if units_of(line, "done")]
    every = units_of("".join(line for _, line in seen), "done")
    assert len(every) > 20
    pace = (moments[-1] - moments[0]) / len(every)  # of a unit; a process takes far longer to start
    random = np.random.default_rng()
    done = []
    for _ in range(5):
        # Units until the kill, which comes while another is under way.
        more = int(random.integers(1, len(every) // 6))
        log = []
        with subprocess.Popen(command(folder, "resume"), stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                log.append(line)
                if len(units_of("".join(log), "done")) == more:
                    time.sleep(random.random() * pace)
                    process.send_signal(signal.SIGKILL)
                    break
            log += process.stderr.readlines()
        assert process.returncode == -signal.SIGKILL
        done += units_of("".join(log), "done")
        finished = {path.stem for path in (folder / "checkpoint").glob("tree*.part*.npz")}
        assert set(done) <= finished, "what was reported done is on disk"
    log = subprocess.run(command(folder, "resume"), capture_output=True, text=True, check=True).stderr
    last = units_of(log, "done")
    assert not finished & set(last), "what was finished is not done again"
    assert finished | set(last) == set(every)
    assert len(done + last) == len(set(done + last)), "no finished unit is repeated"
    assert len(every) - len(done + last) <= 5, "of each kill, at most one unit was finished and not reported"
    assert trained_arrays(folder) == trained_arrays(whole)


@pytest.mark.parametrize(
    "model",
    [LinearTree(n_trees=2, arity=4, max_leaf=20), CraftForest(n_trees=5, max_leaf=20), OnlineForest()],
    ids=["linear-tree", "craft-forest", "online-forest"],
)
def test_a_stopped_training_goes_on(model, many_labels, tmp_path, saved):
    """Stopped after the second unit that is kept; only the others are left to do."""

    class Stops:
        def map(self, units, shared, n_threads, progress):
            from labelwood.executors import THREADS

            for number, found in enumerate(THREADS.map(units, shared, n_threads, progress)):
                if number == 2 and not units[0].name.startswith("vectors"):
                    raise KeyboardInterrupt
                yield found

    model = clone(model).set_params(n_jobs=1)
    alone = saved(model.fit(*many_labels))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*many_labels, checkpoint=tmp_path, executor=Stops())
    finished = {path.name for path in tmp_path.glob("*.npz") if "shape" not in path.name} - {"parts.npz"}
    assert len(finished) == 2
    assert saved(model.fit(*many_labels, checkpoint=tmp_path, resume=True)) == alone


def test_other_data_or_parameters_are_refused(many_labels, tmp_path):
    X, Y = many_labels
    model = CraftForest(n_trees=2, max_leaf=50, n_jobs=1)
    model.fit(X, Y, checkpoint=tmp_path)
    with pytest.raises(LabelwoodError, match="holds a training already; resume it"):
        model.fit(X, Y, checkpoint=tmp_path)
    model.set_params(n_jobs=2).fit(X, Y, checkpoint=tmp_path, resume=True)
    for changed, rows in ((CraftForest(n_trees=2, max_leaf=51), X), (model, 2 * X)):
        with pytest.raises(LabelwoodError, match="of other data, parameters or version"):
            changed.fit(rows, Y, checkpoint=tmp_path, resume=True)
    with pytest.raises(LabelwoodError, match="of other data, parameters or version"):
        model.set_params(random_state=1).fit(X, Y, checkpoint=tmp_path, resume=True)


def test_a_seed_that_was_drawn_is_kept(many_labels, tmp_path, saved):
    model = CraftForest(n_trees=2, max_leaf=50, random_state=None, n_jobs=1)
    first = saved(model.fit(*many_labels, checkpoint=tmp_path))
    assert json.loads((tmp_path / "checkpoint.json").read_text())["seed"] == first[1]
    assert saved(model.fit(*many_labels, checkpoint=tmp_path, resume=True)) == first


def test_damaged_units_and_strange_directories_are_refused(many_labels, tmp_path):
    model = CraftForest(n_trees=2, max_leaf=50, n_jobs=1)
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(LabelwoodError, match="must be a new or empty directory"):
        model.fit(*many_labels, checkpoint=tmp_path, resume=True)
    folder = tmp_path / "own"
    model.fit(*many_labels, checkpoint=folder)
    unit = next(folder.glob("trees*.npz"))
    unit.write_bytes(unit.read_bytes()[:100])
    with pytest.raises(FormatError, match=r"is damaged; remove it"):
        model.fit(*many_labels, checkpoint=folder, resume=True)
    unit.unlink()
    model.fit(*many_labels, checkpoint=folder, resume=True)
    (folder / "checkpoint.json").write_text("{}")
    with pytest.raises(FormatError, match="damaged"):
        model.fit(*many_labels, checkpoint=folder, resume=True)
