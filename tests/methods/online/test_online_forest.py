"""OnlineForest: its trees are OnlineTrees, and it goes on learning."""

import copy

import numpy as np
import pytest

from labelwood import LabelwoodError, OnlineForest, OnlineTree


def test_its_trees_are_those_of_their_seeds(planted):
    forest = OnlineForest(n_trees=2, tree={"max_leaf": 3}, random_state=5, n_jobs=1).fit(planted.X, planted.Y)
    for seed, tree in zip((5, 6), forest.trees_, strict=True):
        alone = OnlineTree(max_leaf=3, random_state=seed, n_jobs=1).fit(planted.X, planted.Y)
        ours, theirs = tree.to_saved()[1], alone.to_saved()[1]
        assert ours.keys() == theirs.keys()
        for name, array in theirs.items():
            np.testing.assert_array_equal(ours[name], array, err_msg=name)


def test_learns_on_after_fit_and_from_nothing(planted):
    X, Y = planted.X, planted.Y
    half = X.shape[0] // 2
    forest = OnlineForest(n_trees=2, n_jobs=1).fit(X[:half], Y[:half])
    rows = forest.trained_["rows"]
    forest.partial_fit(X[half:], Y[half:])
    assert forest.trained_["rows"] > rows
    assert forest.score(X, Y) > 0.9
    fresh = OnlineForest(n_trees=2, n_jobs=1).partial_fit([{0: 1.0}], [["red"]])
    fresh.partial_fit([{3: 1.0}], [["blue"]])
    assert fresh.classes_.tolist() == ["red", "blue"]
    assert fresh.predict_topk([{3: 1.0}], k=1)[0].tolist() == [["blue"]]


def test_parameters_of_its_trees_are_checked(planted):
    with pytest.raises(LabelwoodError, match="OnlineForest: tree must hold parameters of OnlineTree"):
        OnlineForest(tree={"leaves": 3}).fit(planted.X, planted.Y)
    with pytest.raises(LabelwoodError, match="OnlineTree: arity must be"):
        OnlineForest(tree={"arity": 1}).fit(planted.X, planted.Y)


def interrupted_at(call, forest):
    """Let Ctrl-C come during a call of the second tree's kernel."""
    tree = forest.trees_[1]
    kernel, calls = tree._tree, []

    class Interrupting:
        def __getattr__(self, name):
            return getattr(kernel, name)

        def learn(self, *arguments):
            calls.append(arguments)
            kernel.learn(*arguments)
            if len(calls) == call:
                raise KeyboardInterrupt

    tree._tree = Interrupting()
    return lambda: setattr(tree, "_tree", kernel)


def test_an_interrupt_leaves_all_trees_with_the_same_rows(planted, monkeypatch):
    X, Y = planted.X, planted.Y
    monkeypatch.setattr("labelwood.methods.online.growing.CHUNK", 2000)
    forest = OnlineForest(n_trees=3, n_jobs=1).partial_fit(X[:10], Y[:10])
    undo = interrupted_at(2, forest)
    with pytest.raises(KeyboardInterrupt) as caught:
        forest.partial_fit(X[10:], Y[10:])
    undo()
    done = forest.rows_learned_
    assert 0 < done < X.shape[0] - 10
    assert f"OnlineForest: the first {done} of {X.shape[0] - 10} rows are learned" in caught.value.__notes__
    assert {tree.n_seen_ for tree in forest.trees_} == {10 + done}
    expected = OnlineForest(n_trees=3, n_jobs=1).partial_fit(X[:10], Y[:10])
    expected.partial_fit(X[10 : 10 + done], Y[10 : 10 + done])
    for ours, theirs in zip(forest.trees_, expected.trees_, strict=True):
        for name, array in theirs.to_saved()[1].items():
            np.testing.assert_array_equal(ours.to_saved()[1][name], array, err_msg=name)


def test_predictions_before_learning_are_those_of_a_copy(planted):
    X, Y = planted.X, planted.Y
    forest = OnlineForest(n_trees=2, n_jobs=1).partial_fit(X[:40], Y[:40])
    expected = []
    copied = copy.copy(forest)
    for row in range(40, 60):
        expected.append(copied.topk_ids(X[[row]], 3).labels[0].tolist())
        copied.partial_fit(X[[row]], Y[[row]])
    found, _ = forest.test_then_learn(X[40:60], Y[40:60], k=3)
    assert found.tolist() == expected
    assert forest.n_seen_ == copied.n_seen_ == 60
    at_once, _ = copied.test_then_learn(X[60:], Y[60:], k=1, at_once=True)
    np.testing.assert_array_equal(at_once, forest.topk_ids(X[60:], 1).labels)


def test_labels_change_in_every_tree(tmp_path):
    rows, labels = [{0: 1.0}, {1: 1.0}, {2: 1.0}], [["red"], ["green"], ["blue"]]
    forest = OnlineForest(n_trees=2, n_jobs=1).partial_fit(rows, labels)
    forest.labels.rename("red", "crimson")
    forest.labels.merge("green", "blue")
    forest.labels.retire("crimson")
    assert [entry.state for entry in forest.labels.list()] == ["retired", "merged", "active"]
    forest.save(tmp_path / "model")
    loaded = OnlineForest.load(tmp_path / "model")
    for model in (forest, loaded):
        assert model.classes_.tolist() == ["crimson", "green", "blue"]
        assert all(tree.classes_.tolist() == model.classes_.tolist() for tree in model.trees_)
        assert model.predict_topk(rows, 3)[0].tolist() == [["blue", None, None]] * 3
    loaded.partial_fit([{7: 1.0}], [["violet"]])
    assert loaded.predict_topk([{7: 1.0}], 1)[0].tolist() == [["violet"]]


def test_a_frozen_forest_predicts_alike_and_learns_no_more(planted, tmp_path):
    forest = OnlineForest(n_trees=2, n_jobs=1).fit(planted.X, planted.Y)
    frozen = forest.freeze()
    assert forest.can_learn
    assert not frozen.can_learn
    assert frozen.n_seen_ == forest.n_seen_
    labels, scores = forest.predict_topk(planted.X, 3)
    found, near = frozen.predict_topk(planted.X, 3)
    np.testing.assert_array_equal(found[:, 0], labels[:, 0])
    np.testing.assert_allclose(near, scores, atol=2e-3)
    with pytest.raises(LabelwoodError, match="OnlineForest: this model was frozen"):
        frozen.partial_fit(planted.X, planted.Y)
    forest.save(tmp_path / "small", inference_only=True)
    assert not OnlineForest.load(tmp_path / "small").can_learn
