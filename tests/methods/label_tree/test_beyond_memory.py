"""Training on data in files: the same model as from memory, in bounded memory."""

import json
import subprocess
import sys

import numpy as np
import pytest

from labelwood import LabelwoodError, LinearTree, OnlineTree
from labelwood.data import load
from labelwood.data.mapped_directory import write_directory
from labelwood.data.synth import Shape, synth, synth_parts
from labelwood.methods.label_tree.training_rows import TrainingRows
from labelwood.packed import tree_shape
from labelwood.resources.memory import Limit, resident
from labelwood.run_context import RunContext

TRAINING = """
import json, sys
import labelwood
from labelwood.data import load
from labelwood.resources.memory import peak_resident, resident

method, path, allowed = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = getattr(labelwood, method)(n_jobs=1)
dataset = load(path)
allowed += resident()
model.fit(dataset.X, dataset.Y, max_memory=allowed)
print(json.dumps({"limit": allowed, "peak": peak_resident()}))
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """Rows that take much more than what their training needs besides them."""
    path = tmp_path_factory.mktemp("big") / "rows.lw"
    drawn = synth(Shape(8000, n_labels=40, n_features=2000, words_per_row=300))
    write_directory(path, [drawn] * 12)
    return path


@pytest.mark.usefixtures("no_sanitizer")
@pytest.mark.parametrize("method", ["LinearTree", "OnlineTree"])
def test_memory_stays_below_the_limit(method, big):
    """What training may hold besides Python and the labels is less than the rows alone take."""
    size = sum(file.stat().st_size for file in big.glob("X_*.npy"))
    allowed = int(0.8 * size)
    told = subprocess.run(
        [sys.executable, "-c", TRAINING, method, str(big), str(allowed)], capture_output=True, text=True, check=True
    )
    found = json.loads(told.stdout)
    assert found["peak"] <= found["limit"]


def test_pages_of_the_file_take_an_eighth_of_the_memory(big):
    """Or all of the file, if it is smaller; rows that are read at random must not wait for pages that were released."""
    X = load(big).X
    held = 8 * X.nnz
    for free, least, most in ((held, 0.1 * held, 0.13 * held), (100 * held, held, 1.5 * held + 2**24)):
        run = RunContext(limit=Limit(resident() + free, "max_memory allows"))
        assert least <= TrainingRows.of(X, run, normalize=False).X.resident <= most


@pytest.mark.parametrize("model", [LinearTree(n_jobs=2, max_leaf=20), OnlineTree(n_jobs=1)], ids=["linear", "online"])
def test_rows_in_a_file_give_the_same_model(model, tmp_path):
    write_directory(tmp_path / "rows.lw", synth_parts(Shape(2000, n_labels=60, n_features=500)))
    dataset = load(tmp_path / "rows.lw")
    plain = dataset.X.take(np.arange(dataset.n_rows))
    from_file = model.fit(dataset.X, dataset.Y).to_saved()[1]
    from_memory = model.fit(plain, dataset.Y).to_saved()[1]
    assert {name: array.tobytes() for name, array in from_file.items()} == {
        name: array.tobytes() for name, array in from_memory.items()
    }


@pytest.mark.parametrize("most_entries", [1, 50, 1000])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_nodes_read_in_windows_are_trained_alike(loss, most_entries, planted):
    """However few rows are held at a time: the visits are the same, in the same order."""
    from labelwood.sparse import from_scipy

    X, Y = from_scipy(planted.X), from_scipy(planted.Y)
    model = LinearTree(loss=loss, n_jobs=2)
    run = RunContext(n_threads=2)
    held = TrainingRows.of(X, run, normalize=True)
    tree = tree_shape.random_tree(Y.n_cols, arity=2, max_leaf=3, seed=0)
    ours = model._train(TrainingRows(X, held.scale, most_entries), Y, [tree], run)[0]
    theirs = model._train(held, Y, [tree], run)[0]
    for name, array in theirs.arrays("").items():
        np.testing.assert_array_equal(ours.arrays("")[name], array)


def test_what_cannot_fit_is_refused(big):
    dataset = load(big)
    with pytest.raises(LabelwoodError, match="LinearTree: training needs up to"):
        LinearTree(n_jobs=1).fit(dataset.X, dataset.Y, max_memory="1MB")
