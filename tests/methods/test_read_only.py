"""Models whose arrays are read-only, as joblib maps them: they predict, save and learn like any other."""

import joblib
import numpy as np
import pytest

import labelwood
from labelwood import METHODS, LivingTree, OnlineForest, OnlineTree

SETTINGS = {"blend": {"models": ["linear-tree", "craft-forest"]}}
ONLINE = [OnlineTree, OnlineForest, LivingTree]


def mapped(model, folder):
    """The model as joblib loads it: every array is a file that is mapped read-only."""
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib", mmap_mode="r")


@pytest.mark.parametrize("method", list(METHODS))
def test_a_mapped_model_answers_is_calibrated_and_saved(method, planted, tmp_path):
    model = METHODS[method](n_jobs=1, **SETTINGS.get(method, {})).fit(planted.X, planted.names)
    X, Y = planted.X[:50], planted.names[:50]
    other = mapped(model, tmp_path)
    np.testing.assert_array_equal(other.predict_topk(X, 3)[1], model.predict_topk(X, 3)[1])
    assert other.explain(X[:1], 2) == model.explain(X[:1], 2)
    for one in (model, other):
        one.calibrate(X, Y).choose_thresholds(X, Y)
    other.save(tmp_path / "saved")
    loaded = labelwood.load(tmp_path / "saved")
    assert (loaded.predict(X) != model.predict(X)).nnz == 0


@pytest.mark.parametrize("kind", ONLINE)
@pytest.mark.parametrize("start", ["fit", "partial_fit", "load"])
def test_a_mapped_model_learns(kind, start, planted, tmp_path):
    half = planted.X.shape[0] // 2
    model = kind(n_jobs=1)
    getattr(model, "partial_fit" if start == "partial_fit" else "fit")(planted.X[:half], planted.names[:half])
    if start == "load":
        model.save(tmp_path / "saved")
        model = labelwood.load(tmp_path / "saved")
    other = mapped(model, tmp_path)
    for one in (model, other):
        one.partial_fit(planted.X[half:], planted.names[half:])
        one.labels.retire(planted.names[0][0])
    assert other.n_seen_ == model.n_seen_ == planted.X.shape[0]
    np.testing.assert_array_equal(other.label_counts_, model.label_counts_)
    np.testing.assert_array_equal(other.predict_topk(planted.X, 3)[1], model.predict_topk(planted.X, 3)[1])


def learned(model):
    return model.partial_fit([{0: 1.0}], [[3]]).label_counts_[3]


@pytest.mark.parametrize("kind", ONLINE)
def test_models_that_joblib_hands_to_its_workers_learn(kind):
    """joblib maps arrays above ``max_nbytes`` by itself: by default, the counts of 131,072 labels."""
    model = kind(n_jobs=1).partial_fit(np.eye(8, dtype=np.float32), np.eye(8, dtype=np.float32))
    assert joblib.Parallel(n_jobs=2, max_nbytes=8)(joblib.delayed(learned)(model) for _ in range(2)) == [2, 2]
