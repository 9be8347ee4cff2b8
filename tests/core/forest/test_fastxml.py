"""FastXML: the twin on cases worked out by hand, and the kernel against the twin."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from forest_leaves import leaves_of, twin_leaves
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import fastxml_forest as twin
from reference.rng import Rng
from sklearn.linear_model import LogisticRegression

from labelwood import FastXmlForest
from labelwood.metrics import inverse_propensities


def no_loss(n):
    return np.zeros(n), np.zeros(n)


def random_data(random, n, n_features, n_labels):
    """Rows of a few features; the labels follow from them, with noise."""
    X = (random.random((n, n_features)) < 0.3) * random.random((n, n_features)).round(2)
    Y = (X @ random.standard_normal((n_features, n_labels)) + random.standard_normal((n, n_labels)) > 0.8).astype(int)
    labelled = Y.any(axis=1)
    return X[labelled].astype(np.float32), Y[labelled]


def test_a_ranking_worked_out_by_hand():
    """Row 0 has labels 0 and 1, row 1 has label 1, row 2 has labels 0, 1 and 2."""
    Y = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1]])
    two, three = 1 / math.log(2) + 1 / math.log(3), 1 / math.log(2) + 1 / math.log(3) + 1 / math.log(4)
    assert twin.ideal(1) == pytest.approx(math.log(2))
    assert twin.ideal(2) == pytest.approx(1 / two)
    assert twin.ideal(3) == pytest.approx(1 / three)
    ranks = twin.ranking(Y, np.arange(3), np.ones(3))
    assert ranks == {1: 0, 0: 1, 2: 2}
    # A full hit has nDCG 1; label 1 at the first rank is all that row 1 can have.
    assert twin.gain_of(np.array([1]), ranks, np.ones(3)) == pytest.approx(1)
    assert twin.gain_of(np.array([0, 1]), ranks, np.ones(3)) == pytest.approx(1)
    # Label 2 alone stands on rank 3: log(2) / log(4).
    assert twin.gain_of(np.array([2]), ranks, np.ones(3)) == pytest.approx(0.5)
    # A heavy label overtakes: 2 has the gain 9 / three = 3.0, 1 has 1 / two + log(2) + 1 / three = 1.4.
    assert twin.ranking(Y, np.arange(3), np.array([1.0, 1.0, 9.0])) == {2: 0, 1: 1, 0: 2}


def test_sides_gather_the_rows_of_one_label():
    """Rows of label 0 and rows of label 1: a majority on each side draws the other rows of its label."""
    Y = np.repeat(np.eye(2, dtype=int), 5, axis=0)
    start = np.array([1, 1, 1, 0, 0, 1, 1, 0, 0, 0], bool)
    positive, history = twin.assign(Y, np.ones(2), start, no_loss(10))
    np.testing.assert_array_equal(positive, np.repeat([True, False], 5))
    assert history[-1] == pytest.approx(1)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_the_objective_of_the_sides_never_falls(seed):
    random = np.random.default_rng(seed)
    _, Y = random_data(random, 60, 10, 8)
    weights = random.uniform(1, 5, 8)
    _, history = twin.assign(Y, weights, random.random(len(Y)) < 0.5, no_loss(len(Y)))
    assert (np.diff(history) >= -1e-12).all()


@pytest.mark.parametrize("C", [0.05, 0.3])
def test_the_separator_is_the_optimum(C):
    """scikit-learn minimises the same objective."""
    random = np.random.default_rng(4)
    X, _ = random_data(random, 120, 12, 5)
    X = np.hstack([X, np.ones((len(X), 1))]).astype(np.float64)
    positive = X[:, 0] + 0.3 * random.standard_normal(len(X)) > 0.1
    w = twin.separate(X, positive, np.zeros(X.shape[1]), twin.Options(C=C, tolerance=1e-8), Rng(1))
    up, down = twin.costs(positive, C)
    peer = LogisticRegression(
        l1_ratio=1, solver="liblinear", C=1, fit_intercept=False, tol=1e-8, max_iter=10_000, random_state=0
    ).fit(X, positive, sample_weight=np.where(positive, up, down))
    assert twin.objective(X, positive, w, C) == pytest.approx(twin.objective(X, positive, peer.coef_[0], C), rel=1e-6)
    np.testing.assert_allclose(w, peer.coef_[0], atol=2e-3)
    assert (w == 0).any()


@given(
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.5, 1.0, 10.0]),
    rounds=st.sampled_from([1, 2, 3]),
    bias=st.sampled_from([0.0, 1.0]),
    propensity=st.booleans(),
    leaf_size=st.sampled_from([2, 100]),
)
@settings(deadline=None, max_examples=25)
def test_the_forest_is_the_twins(seed, C, rounds, bias, propensity, leaf_size):
    random = np.random.default_rng(seed)
    X, Y = random_data(random, 90, 15, 7)
    shared = {"C": C, "rounds": rounds, "bias": bias, "leaf_size": leaf_size, "max_leaf": 6, "tolerance": 1e-3}
    plain = {"normalize": False, "weight_dtype": "float32", "propensity": propensity}
    model = FastXmlForest(n_trees=2, n_jobs=1, random_state=3, **shared, **plain).fit(X, sp.csr_array(Y))
    weights = np.ones(Y.shape[1])
    if propensity:
        weights = inverse_propensities(Y.sum(axis=0), len(Y)).astype(np.float32).astype(np.float64)
    for tree in range(2):
        wanted = twin.grow(X.astype(np.float64), Y, weights, twin.Options(**shared), seed=3, tree=tree)
        found, expected = leaves_of(model.forest_, tree), twin_leaves(wanted)
        assert [labels for labels, _ in found] == [labels for labels, _ in expected]
        for (_, values), (_, twins) in zip(found, expected, strict=True):
            np.testing.assert_allclose(values, twins, rtol=1e-5)
        if wanted.children:
            first = int(model.forest_.child_ptr[tree])
            columns, own = model.forest_.vector(first)
            w = np.zeros(X.shape[1])
            w[columns] = own
            np.testing.assert_allclose(w, wanted.w[:-1], rtol=1e-4, atol=1e-6)
            assert model.forest_.bias[first] == pytest.approx(wanted.w[-1] * bias, rel=1e-4, abs=1e-6)
