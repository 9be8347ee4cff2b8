"""OnlineForest: its trees are OnlineTrees, and it goes on learning."""

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
