"""What is LinearTree's and OneVsRest's own; what every method must do is in test_common.py."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import LabelwoodError, LabelwoodWarning, LinearTree, OneVsRest, metrics
from labelwood.packed.tree_shape import flat_tree


@pytest.fixture
def topics():
    """600 rows, 60 labels: each label has a word of its own, among words that say nothing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 60, (600, 2))
    Y = np.zeros((600, 60), np.int64)
    np.put_along_axis(Y, labels, 1, axis=1)
    X = np.hstack([Y + 0.0, rng.random((600, 40)) < 0.2])
    return sp.csr_array(X.astype(np.float32)), Y


@pytest.mark.parametrize(
    "parameters",
    [
        {"tree": "balanced", "arity": 2, "max_leaf": 4},
        {"tree": "kmeans", "arity": 8, "max_depth": 3},
        {"tree": "random", "arity": 4, "max_leaf": 5},
        {"tree": "huffman", "arity": 3},
        {"loss": "logistic", "C": 10.0, "max_leaf": 10},
        {"weight_threshold": None},
        {"weight_dtype": "float32"},
        {"search": "exact", "max_leaf": 10},
        {"n_trees": 3, "max_leaf": 10},
        {"intercept": 0.0, "bias": 1.0},
    ],
)
def test_every_kind_of_tree_learns(topics, parameters):
    X, Y = topics
    model = LinearTree(**parameters).fit(X, Y)
    assert model.score(X, Y) > 0.95
    if "n_trees" in parameters:
        assert len(model.trees_) == 3
        shapes = [packed.tree.label.tolist() for packed in model.trees_]
        assert shapes[0] != shapes[1]  # every tree has its own seed


def test_one_vs_rest_is_a_tree_of_depth_one(topics):
    X, Y = topics
    flat = OneVsRest().fit(X, Y)
    tree = LinearTree(max_leaf=1000).fit(X, Y)
    assert flat.describe()["depth"] == tree.describe()["depth"] == 1
    assert flat.score(X, Y) > 0.95


def test_logistic_scores_are_probabilities():
    """Two labels that come with probability 0.7 and 0.3, whatever the features."""
    rng = np.random.default_rng(1)
    X = np.ones((300, 1), np.float32)
    first = rng.random(300) < 0.7
    Y = np.stack([first, ~first], axis=1).astype(int)
    model = LinearTree(loss="logistic", bias=1.0, tolerance=0.01, max_passes=2000).fit(X, Y)
    scores = model.predict_topk(X[:1], 2)[1]
    assert scores[0] == pytest.approx([first.mean(), 1 - first.mean()], abs=0.02)


def test_a_threshold_drops_exactly_the_small_weights(topics):
    X, Y = topics
    whole = LinearTree(weight_threshold=None, max_leaf=10).fit(X, Y)
    cut = LinearTree(weight_threshold=0.2, weight_dtype="float32", max_leaf=10).fit(X, Y)
    kept = whole.trees_[0].node_weights.weights
    np.testing.assert_array_equal(np.sort(kept[np.abs(kept) > 0.2]), np.sort(cut.trees_[0].node_weights.weights))


def test_a_hierarchy_of_ones_own(topics, tmp_path):
    X, Y = topics
    names = [f"topic {i}" for i in range(60)]
    hierarchy = {"even": names[::2], "odd": {"low": names[1:30:2], "high": names[31::2]}}
    model = LinearTree(hierarchy=hierarchy).fit(X, Y, label_names=names)
    assert model.trees_[0].tree.depth == 3
    model.save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(X)[0], model.predict_topk(X)[0])
    with pytest.warns(LabelwoodWarning, match="labels without a place, put into a group of their own: 55"):
        LinearTree(hierarchy=[names[:5]]).fit(X, Y, label_names=names)


def test_presets(topics):
    X, Y = topics
    paper = LinearTree.preset("paper", arity=8)
    assert (paper.tree, paper.arity, paper.max_depth, paper.weight_threshold) == ("kmeans", 8, 6, None)
    assert paper.fit(X, Y).score(X, Y) > 0.9
    assert LinearTree.preset("parabel").fit(X, Y).describe()["depth"] == 1
    with pytest.raises(LabelwoodError, match="preset must be one of paper, parabel; got 'best'"):
        LinearTree.preset("best")


def test_float16_weights_move_no_ranking_that_matters(topics):
    X, Y = topics
    half, full = (LinearTree(weight_dtype=d).fit(X, Y).predict_topk(X, 3)[1] for d in ("float16", "float32"))
    np.testing.assert_allclose(half, full, atol=5e-3)


def test_labels_without_rows_are_not_suggested(topics):
    X, Y = topics
    Y[:, 7] = 0
    labels, scores = LinearTree(max_leaf=10).fit(X, Y).predict_topk(X, 60)
    assert (scores[labels == 7] == 0).all()


def test_an_interrupt_stops_training_within_a_second():
    rng = np.random.default_rng(0)
    X = sp.random_array((4000, 2000), density=0.05, dtype=np.float32, rng=rng, format="csr")
    Y = sp.random_array((4000, 3000), density=0.002, rng=rng, format="csr")
    Y.data[:] = 1
    model = OneVsRest(tolerance=1e-9, max_passes=100_000)
    sent = []

    def interrupt():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        assert time.process_time() - sent[0] < 4.0  # a second of two threads, and room
        assert not hasattr(model, "trees_")
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("name", "power", "bars"), [("bibtex", 3, (63.5, 39.0, 28.2)), ("delicious", 2, (66.9, 60.3, 55.8))]
)
@pytest.mark.usefixtures("no_sanitizer")
def test_quality_on_real_data(real_data, name, power, bars):
    train, test = (labelwood.data.load(real_data(name) / f"{part}.txt.xz") for part in ("train", "test"))
    model = LinearTree(n_trees=3, C=0.5, score_power=power).fit(train.X, train.Y.to_scipy())
    top = model.topk_ids(test.X, 5)
    reached = [100 * metrics.precision_at_k(test.Y, top, k) for k in (1, 3, 5)]
    assert all(value >= bar for value, bar in zip(reached, bars, strict=True)), reached


def test_threads_change_no_byte_on_real_data(real_data, tmp_path):
    train = labelwood.data.load(real_data("bibtex") / "train.txt.xz")
    for n_jobs in (1, 2):
        LinearTree(n_trees=2, max_leaf=20, n_jobs=n_jobs).fit(train.X, train.Y.to_scipy()).save(tmp_path / str(n_jobs))
    files = [sorted((tmp_path / n).glob("*.npy")) for n in ("1", "2")]
    assert [file.name for file in files[0]] == [file.name for file in files[1]]
    assert len(files[0]) > 10
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name


def test_few_labels_need_no_clustering(topics):
    X, Y = topics
    model = LinearTree(n_jobs=1, max_leaf=60).fit(X, Y)
    np.testing.assert_array_equal(model.trees_[0].tree.label, flat_tree(60).label)
    assert "cluster" not in model.fit_seconds_
