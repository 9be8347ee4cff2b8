"""FastXmlForest: presets, label weights, what its leaves hold, and when a node is not split."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import FastXmlForest, LabelwoodError
from labelwood.metrics import evaluate, inverse_propensities
from labelwood.sparse import from_scipy


@pytest.fixture
def halves():
    """Two halves that share neither labels nor telling features; noise features are everywhere."""
    random = np.random.default_rng(0)
    half = np.arange(200) % 2
    X, Y = np.zeros((200, 60), np.float32), np.zeros((200, 20), np.float32)
    for i in range(200):
        X[i, 20 * half[i] + random.choice(20, 6, replace=False)] = 1
        X[i, 40 + random.choice(20, 4, replace=False)] = 1
        Y[i, 10 * half[i] + random.choice(10, 2, replace=False)] = 1
    return X, Y, half


def test_the_first_separator_recovers_planted_halves(halves):
    X, Y, half = halves
    forest = FastXmlForest(n_trees=5, n_jobs=1).fit(X, sp.csr_array(Y)).forest_
    rows = forest.prepare(from_scipy(sp.csr_array(X))).to_scipy().toarray()
    for tree in range(5):
        first = forest.child_ptr[tree]
        columns, weights = forest.vector(first)
        side = rows[:, columns] @ weights.astype(np.float32) + forest.bias[first] >= 0
        agree = (side == half.astype(bool)).mean()
        assert max(agree, 1 - agree) > 0.98
        assert not (columns >= 40).all()


def test_presets():
    plain, tail = (FastXmlForest.preset(name, n_trees=3) for name in ("fastxml", "pfastrexml"))
    assert (plain.n_trees, plain.max_leaf, plain.C, plain.propensity, plain.rerank) == (3, 10, 1.0, False, False)
    assert (tail.propensity, tail.rerank, tail.propensity_A, tail.propensity_B) == (True, True, 0.55, 1.5)
    with pytest.raises(LabelwoodError, match="FastXmlForest: preset must be one of fastxml, pfastrexml; got 'paper'"):
        FastXmlForest.preset("paper")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be greater than 0; got 0"),
        ({"rounds": 0}, "rounds must be at least 1; got 0"),
        ({"tolerance": 2.0}, "tolerance must be at most 1; got 2.0"),
        ({"propensity_A": -1.0}, "propensity_A must be greater than 0; got -1.0"),
    ],
)
def test_bad_parameters(parameters, message, planted):
    with pytest.raises(LabelwoodError, match=f"FastXmlForest: {message}"):
        FastXmlForest(**parameters).fit(planted.X, planted.Y)


def test_a_leaf_holds_weighted_shares_of_its_rows():
    """One leaf: label 0 in four rows of four, label 1 in one."""
    X, Y = np.ones((4, 3), np.float32), np.array([[1, 1], [1, 0], [1, 0], [1, 0]])
    plain = FastXmlForest(n_trees=1, n_jobs=1, weight_dtype="float32").fit(X, sp.csr_array(Y))
    np.testing.assert_allclose(plain.forest_.leaf_values, [1.0, 0.25])
    weighted = FastXmlForest(n_trees=1, n_jobs=1, weight_dtype="float32", propensity=True).fit(X, sp.csr_array(Y))
    weights = inverse_propensities([4, 1], 4)
    np.testing.assert_allclose(weighted.forest_.leaf_values, [weights[0] / weights[1], 0.25], rtol=1e-6)


def test_propensities_raise_rare_labels(planted, planted_test):
    """PSP rises where half of the rows of most labels are missing from the training truth."""
    random = np.random.default_rng(0)
    Y = planted.Y.toarray() > 0
    common = np.zeros((len(Y), 1), bool)
    common[random.random(len(Y)) < 0.7] = True
    train = sp.csr_array(np.hstack([Y, common]).astype(np.float32))
    truth = sp.csr_array(
        np.hstack([planted_test.Y.toarray(), random.random((planted_test.Y.shape[0], 1)) < 0.7]).astype(np.float32)
    )
    weights = inverse_propensities(np.asarray(train.sum(axis=0)).ravel(), len(Y))
    found = [
        evaluate(
            truth,
            FastXmlForest(n_trees=10, n_jobs=1, propensity=propensity)
            .fit(planted.X, train)
            .topk_ids(planted_test.X, 1),
            (1,),
            inv_propensity=weights,
        )["PSP@1"]
        for propensity in (False, True)
    ]
    assert found[1] > found[0]


def test_rows_of_one_label_set_are_one_leaf(planted):
    same = sp.csr_array(np.tile([1.0, 0.0, 1.0], (planted.X.shape[0], 1)))
    assert FastXmlForest(n_trees=2, n_jobs=1).fit(planted.X, same).describe()["nodes"] == 2


def test_a_cost_that_leaves_no_weight_makes_no_split(planted):
    model = FastXmlForest(n_trees=2, C=1e-6, n_jobs=1).fit(planted.X, planted.Y)
    assert model.describe()["nodes"] == 2


def test_threads_do_not_change_the_forest(planted):
    one, two = (FastXmlForest(n_trees=7, n_jobs=jobs).fit(planted.X, planted.Y).forest_ for jobs in (1, 2))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])
