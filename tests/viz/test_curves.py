"""Figures: their last points are the whole model's figures, and they say what they cannot draw."""

import numpy as np
import pytest

from labelwood import CraftForest, LabelwoodError, LdsmForest, LinearTree, OnlineForest, OnlineTree
from labelwood.data.synth import Shape, synth
from labelwood.metrics import precision_at_k, report_by_frequency
from labelwood.viz.curves import (
    Measured,
    against_size,
    against_trees,
    by_depth,
    objective_by_depth,
    recall_by_frequency,
)
from labelwood.viz.tree_prefixes import prefixes


@pytest.fixture(scope="module")
def data():
    dataset = synth(Shape(600, 30, 200), seed=0)
    return dataset.X, dataset.Y


MODELS = {
    "linear": LinearTree(n_trees=3, arity=3, max_leaf=4, n_jobs=1),
    "craft": CraftForest(n_trees=7, n_jobs=1),
    "ldsm": LdsmForest(n_trees=4, epochs=2, n_jobs=1),
}


@pytest.fixture(scope="module")
def models(data):
    return {name: model.fit(*data) for name, model in MODELS.items()}


def test_all_trees_together_are_the_model(models, data):
    X, Y = data
    for model in models.values():
        points = list(prefixes(model, X, 3))
        n_trees, n_nodes, top = points[-1]
        whole = model.topk_ids(X, 3)
        assert n_trees == model.n_trees
        assert n_nodes == model.describe()["nodes"]
        assert precision_at_k(Y, top, 3) == pytest.approx(precision_at_k(Y, whole, 3), abs=2e-3)
        np.testing.assert_allclose(top.scores[:, 0], whole.scores[:, 0], rtol=2e-3)
        assert [count for count, _, _ in points] == sorted({count for count, _, _ in points})


def test_the_trees_of_an_online_forest(data):
    X, Y = data
    model = OnlineForest(n_trees=3, n_jobs=1).fit(X, Y)
    points = list(prefixes(model, X, 3))
    assert [count for count, _, _ in points] == [1, 2, 3]
    np.testing.assert_array_equal(points[-1][2].labels, model.topk_ids(X, 3).labels)
    assert points[-1][1] == sum(tree.packed.tree.n_nodes for tree in model.trees())


def test_a_forest_cut_to_its_first_tree(data):
    X, Y = data
    one = CraftForest(n_trees=1, n_jobs=1).fit(X, Y)
    more = CraftForest(n_trees=3, n_jobs=1).fit(X, Y)
    first = next(iter(prefixes(more, X, 5)))[2]
    np.testing.assert_allclose(first.scores, one.topk_ids(X, 5).scores, atol=1e-3)


def test_quality_against_trees_nodes_and_size(models, data):
    measured = {name: Measured(*data) for name in models}
    trees = against_trees(models, measured, 3)
    nodes = against_trees(models, measured, 3, nodes=True)
    size = against_size(models, measured, 3)
    for by_trees, by_nodes, by_size in zip(trees.curves, nodes.curves, size.curves, strict=True):
        assert by_trees.y == by_nodes.y
        assert by_nodes.x[0] > by_trees.x[0]
        assert by_size.y[0] == pytest.approx(by_trees.y[-1], abs=0.5)


def test_recall_by_frequency_adds_up(models, data):
    X, Y = data
    model = models["linear"]
    curve = recall_by_frequency({"m": model}, {"m": Measured(X, Y)}, 5).curves[0]
    octave = np.floor(np.log2(model.label_counts_)).astype(int)
    weights = [model.label_counts_[octave == np.log2(x)].sum() for x in curve.x]
    report = report_by_frequency(Y, model.topk_ids(X, 5), model.label_counts_, [5])
    total = sum(part["R@5"] * part["test_share"] for part in report.values())
    assert np.average(curve.y, weights=weights) == pytest.approx(100 * total)


def test_depth_and_objective(models):
    depth = by_depth({"linear": models["linear"]}).curves[0]
    assert sum(depth.y) == models["linear"].n_labels_
    curve = objective_by_depth({"ldsm": models["ldsm"]}).curves[0]
    assert len(curve.y) == models["ldsm"].forest_.depth
    root = models["ldsm"].splits_[:4, 0]
    assert curve.y[0] == pytest.approx(np.median(root), abs=1e-6)
    assert all(low <= middle <= high for low, middle, high in zip(curve.low, curve.y, curve.high, strict=True))


def test_what_cannot_be_drawn(models, data):
    with pytest.raises(LabelwoodError, match="J is an objective of ldsm-forest; craft is craft-forest"):
        objective_by_depth({"craft": models["craft"]})
    online = OnlineTree(n_jobs=1).fit(*data)
    with pytest.raises(LabelwoodError, match="online-tree has one tree"):
        against_trees({"online": online}, {"online": Measured(*data)}, 1)
