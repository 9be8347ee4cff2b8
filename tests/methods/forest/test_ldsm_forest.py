"""LdsmForest beyond the common battery: its statistics, its depth, its data on disk."""

import json

import numpy as np
import pytest

from labelwood import FormatError, LabelwoodError, LdsmForest, load
from labelwood.cli import main
from labelwood.methods.forest.ldsm_forest import SPLIT_COLUMNS
from labelwood.methods.forest.split_plots import by_level
from labelwood.sparse import CSR, from_scipy
from labelwood.storage.model_directory import read_model, write_model


@pytest.fixture(scope="module")
def forest(planted):
    return LdsmForest(n_trees=10, n_jobs=1).fit(planted.X, planted.Y)


def test_every_split_is_judged(forest):
    n_inner = forest.forest_.n_nodes - len(forest.forest_.leaves)
    assert forest.splits_.shape == (n_inner, len(SPLIT_COLUMNS))
    facts = forest.describe()
    for column, name in enumerate(SPLIT_COLUMNS):
        assert facts[f"mean_{name}"] == pytest.approx(forest.splits_[:, column].mean(), abs=1e-4)


def test_statistics_survive_saving_and_are_shown(forest, tmp_path, capsys):
    forest.save(tmp_path / "model")
    assert load(tmp_path / "model").splits_.tobytes() == forest.splits_.tobytes()
    assert main(["info", str(tmp_path / "model"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_purity"] == forest.describe()["mean_purity"]


def test_splits_are_drawn_by_level(forest, planted, tmp_path):
    forest.plot(tmp_path / "splits.png")
    assert (tmp_path / "splits.png").read_bytes().startswith(b"\x89PNG")
    found = by_level(forest.forest_, forest.splits_[:, 0])
    first = forest.splits_[: forest.forest_.n_trees, 0]  # every root of this data is split
    np.testing.assert_allclose(found[0], np.quantile(first, (0.1, 0.5, 0.9)), rtol=1e-6)
    assert len(found) == forest.forest_.depth
    stump = LdsmForest(n_trees=2, max_nodes=1, n_jobs=1).fit(planted.X, planted.Y)
    with pytest.raises(LabelwoodError, match="no splits"):
        stump.plot(tmp_path / "none.png")


def test_statistics_of_another_forest_are_refused(forest, tmp_path):
    forest.save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    write_model(tmp_path / "forged", manifest, {**arrays, "splits": arrays["splits"][1:]})
    with pytest.raises(FormatError, match="splits must be float32"):
        LdsmForest.load(tmp_path / "forged")


def test_arrays_on_disk_give_the_same_forest(forest, planted, tmp_path):
    """Training reads mapped arrays in place: data larger than memory is streamed node by node."""
    X = from_scipy(planted.X)
    mapped = {}
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    again = LdsmForest(n_trees=10, n_jobs=1).fit(CSR(**mapped, n_cols=X.n_cols), planted.Y)
    ours, theirs = forest.forest_.arrays(), again.forest_.arrays()
    assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)


def test_trees_stay_shallow(planted_of):
    """Depth within [log_M K, 3 log_M K] where rows separate by label."""
    data = planted_of(n_rows=800, n_labels=64, seed=2)
    for arity in (2, 4):
        depth = LdsmForest(n_trees=5, arity=arity, n_jobs=1).fit(data.X, data.Y).forest_.depth
        bound = np.log(64) / np.log(arity)
        assert bound <= depth <= 3 * bound


def test_max_nodes_bounds_every_tree(planted):
    for most in (1, 2, 9):
        forest = LdsmForest(n_trees=3, max_nodes=most, n_jobs=1).fit(planted.X, planted.Y).forest_
        assert forest.n_nodes <= 3 * (most + 1)  # the last split may pass the bound by arity - 1, as in the paper
    assert LdsmForest(n_trees=3, max_nodes=1, n_jobs=1).fit(planted.X, planted.Y).forest_.depth == 0


def test_explicit_zeros_change_nothing(planted):
    X = planted.X.tolil()
    X[0, :] = 0
    clean = from_scipy(X.tocsr())
    stuffed = CSR(
        np.concatenate([[0], clean.indptr[1:] + 3]),
        np.concatenate([[0, 1, 2], clean.indices]).astype(np.int32),
        np.concatenate([[0, 0, 0], clean.data]).astype(np.float32),
        clean.n_cols,
    )
    one, two = (LdsmForest(n_trees=2, n_jobs=1).fit(X, planted.Y).splits_ for X in (clean, stuffed))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"arity": 4},
        {"optimizer": "adagrad"},
        {"optimizer": "sgd"},
        {"loss": "squared"},
        {"leaf_counts": "labels"},
        {"weight_threshold": 0.0},
        {"leaf_size": 3},
    ],
)
def test_every_reading_learns(planted, planted_test, parameters):
    model = LdsmForest(n_trees=10, n_jobs=1, **parameters).fit(planted.X, planted.Y)
    assert model.score(planted_test.X, planted_test.Y) > 0.6


def test_a_threshold_makes_a_smaller_model(forest, planted):
    whole = LdsmForest(n_trees=10, n_jobs=1, weight_threshold=0.0).fit(planted.X, planted.Y)
    assert forest.describe()["nonzero_weights"] < whole.describe()["nonzero_weights"]
