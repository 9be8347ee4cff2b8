"""Pruning and quantizing fitted label trees."""

import re

import numpy as np
import pytest

from labelwood import LabelwoodError, LinearTree, OneVsRest, load
from labelwood.errors import FormatError


@pytest.fixture(scope="module")
def data(planted_of):
    return planted_of(n_rows=800, n_labels=60)


def fitted(data, **parameters):
    return LinearTree(arity=4, max_leaf=12, n_jobs=1, **parameters).fit(data.X, data.Y)


def arrays_of(model):
    return {name: np.asarray(array) for name, array in model._state()[1].items()}


@pytest.mark.parametrize("start", [None, 0.05])
def test_pruning_gives_what_training_with_the_threshold_gives(data, start):
    pruned = fitted(data, weight_threshold=start, weight_dtype="float32").prune(threshold=0.2)
    trained = fitted(data, weight_threshold=0.2, weight_dtype="float32")
    found, wanted = arrays_of(pruned), arrays_of(trained)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("threshold", [None, 0.05])
def test_a_target_size_is_met_and_used(data, dtype, threshold):
    model = fitted(data, weight_threshold=threshold)
    model.quantize(dtype)
    wanted = int(0.6 * model._model_bytes())
    model.prune(target_size=wanted)
    assert 0.97 * wanted <= model._model_bytes() <= wanted
    tree = model.trees_[0]
    tree.node_weights.check(tree.tree, model.n_features_in_)
    before = model._model_bytes()
    assert model.prune(target_size=10 * before)._model_bytes() == before


def test_a_target_that_no_pruning_reaches_is_refused(data):
    with pytest.raises(LabelwoodError, match="target_size must be at least the"):
        fitted(data).prune(target_size=100)


@pytest.mark.parametrize("search", ["beam", "exact"])
@pytest.mark.parametrize("batch", [1, 400])
def test_int8_predicts_what_its_numbers_say(data, search, batch):
    """The kernel on int8 weights against float32 weights of the same values."""
    small = fitted(data, search=search).quantize("int8")
    chunks = small.trees_[0].node_weights
    assert chunks.weights.dtype == np.int8
    assert len(chunks.scale) == len(small.trees_[0].tree.inner)
    rows = data.X[:batch]
    labels, scores = small.predict_topk(rows, k=5)
    plain = fitted(data, search=search).quantize("int8").quantize("float32")
    wanted_labels, wanted_scores = plain.predict_topk(rows, k=5)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-4, atol=1e-6)
    assert (labels == wanted_labels).mean() > 0.99


def test_int8_is_near_and_smaller(data):
    model = fitted(data)
    before = model._model_bytes()
    plain = model.predict_proba(data.X[:100], k=60).toarray()
    model.quantize("int8")
    assert model._model_bytes() < before
    assert np.abs(model.predict_proba(data.X[:100], k=60).toarray() - plain).max() < 0.03
    assert model.describe()["stored_as"] == "int8"


def test_int8_at_training_is_int8_after_it(data):
    trained = arrays_of(fitted(data, weight_dtype="int8"))
    later = arrays_of(fitted(data, weight_dtype="float32").quantize("int8"))
    for name, array in later.items():
        np.testing.assert_array_equal(trained[name], array)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_shrunk_models_are_saved_and_loaded(data, tmp_path, dtype):
    model = fitted(data, weight_threshold=None).prune(threshold=0.1).quantize(dtype)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one, other in zip(again.predict_topk(data.X[:20]), model.predict_topk(data.X[:20]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_damaged_scales_are_refused(data):
    model = fitted(data).quantize("int8")
    manifest, arrays = model.to_saved()
    for wrong in (arrays["tree0.scale"][:-1], arrays["tree0.scale"] * np.nan):
        with pytest.raises(FormatError, match=r"scale|finite"):
            LinearTree.from_saved(manifest, {**arrays, "tree0.scale": wrong}, where="model")
    without = {name: array for name, array in arrays.items() if name != "tree0.scale"}
    with pytest.raises(FormatError, match="scale"):
        LinearTree.from_saved(manifest, without, where="model")


def test_a_model_without_any_weight_still_predicts(data):
    for dtype in ("float16", "int8"):
        model = OneVsRest(n_jobs=1).fit(data.X, data.Y).quantize(dtype).prune(threshold=1e9)
        tree = model.trees_[0]
        tree.node_weights.check(tree.tree, model.n_features_in_)
        assert model.predict_topk(data.X[:3], k=2)[0].shape == (3, 2)
        assert model.describe()["nonzero_weights"] == 0


def test_the_curve_starts_as_it_is_and_only_measures(data):
    model = fitted(data)
    before = arrays_of(model)
    points = model.shrink_curve(data.X, data.Y, thresholds=(0.3, 5.0), dtypes=("int8",), ks=(1, 3))
    assert [point.setting for point in points] == ["as it is", "threshold 0.3", "threshold 5", "int8"]
    sizes = [point.model_bytes for point in points]
    assert sizes[0] > sizes[1] > sizes[2]
    assert points[0].precision[1] == pytest.approx(model.score(data.X, data.Y))
    assert points[2].precision[1] < points[0].precision[1]
    for name, array in arrays_of(model).items():
        np.testing.assert_array_equal(before[name], array)


def test_wrong_wishes_are_told(data):
    model = fitted(data)
    with pytest.raises(LabelwoodError, match="either threshold or target_size"):
        model.prune()
    with pytest.raises(LabelwoodError, match="threshold must be finite and at least 0; got -1"):
        model.prune(threshold=-1)
    with pytest.raises(LabelwoodError, match="dtype must be one of float32, float16, int8; got 'int4'"):
        model.quantize("int4")


def test_explanations_of_int8_models_add_up(data):
    """What is told about a label is what the search computed."""
    model = fitted(data).quantize("int8")
    plain = fitted(data).quantize("int8").quantize("float32")
    row = data.X[:1]
    found, wanted = (repr(each.explain(row, k=2)) for each in (model, plain))
    numbers = [[float(word) for word in re.findall(r"-?\d+\.\d+", text)] for text in (found, wanted)]
    np.testing.assert_allclose(*numbers, rtol=1e-3, atol=1e-5)
