"""Counting, reaching and sampling an untrained tree, against the twin and against training itself."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood import _core, trees
from labelwood.reference import solve, tree_size
from labelwood.sparse import from_scipy


def problem(seed, n_rows=60, n_features=40, n_labels=12):
    random = np.random.default_rng(seed)
    X = (random.random((n_rows, n_features)) + 0.1) * (random.random((n_rows, n_features)) < 0.2)
    Y = random.random((n_rows, n_labels)) < 0.15
    Y[:n_labels] |= np.eye(n_labels, dtype=bool)[:n_rows]
    return X.astype(np.float32), Y


def matrices(X, Y):
    return tuple(from_scipy(sp.csr_array(matrix.astype(np.float32))) for matrix in (X, Y))


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 80), st.integers(1, 200), st.integers(1, 30), st.integers(1, 3))
def test_counts_match_the_twin(seed, n_rows, n_features, n_labels, n_threads):
    X, Y = problem(seed, n_rows, n_features, n_labels)
    tree = trees.random_tree(n_labels, arity=3, max_leaf=4, seed=seed)
    found = _core.count_tree(*matrices(X, Y), tree, n_threads, None)
    for kernel, twin in zip(found, tree_size.count(X, Y, tree.child_ptr, tree.label), strict=True):
        np.testing.assert_array_equal(kernel, twin)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 80), st.integers(1, 60), st.integers(1, 30), st.integers(1, 3))
def test_reach_matches_the_twin(seed, n_rows, n_features, n_labels, n_threads):
    """In eighths, so that sums are exact: some are 0 in between, some on the very threshold."""
    X, Y = problem(seed, n_rows, n_features, n_labels)
    X = np.round(8 * (X - 0.6 * (X > 0))).astype(np.float32) / 8
    tree = trees.random_tree(n_labels, arity=3, max_leaf=4, seed=seed)
    thresholds = np.array([0.0, 0.25, 1.0], np.float32)
    found = _core.reach_tree(*matrices(X, Y), tree, thresholds, n_threads, None)
    for kernel, twin in zip(
        found, tree_size.reach(X, Y, tree.child_ptr, tree.label, thresholds), strict=True
    ):
        np.testing.assert_array_equal(kernel, twin)


def sampled(X, Y, tree, n_rows, solver, thresholds, seed):
    """All siblings of a flat tree, trained on so many rows."""
    nodes, picked = np.zeros(1, np.int32), np.arange(Y.shape[1], dtype=np.int32)
    return _core.sample_tree(
        *matrices(X, Y), tree, nodes, np.array([0, len(picked)]), picked,
        np.array([n_rows]), thresholds, {**vars(solver), "seed": seed, "most_entries": 0},
    )  # fmt: skip


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_a_sample_on_some_rows_is_one_of_a_smaller_matrix(seed, n_rows):
    X, Y = problem(seed)
    Y[:, 0] |= ~Y.any(axis=1)  # rows without labels are in no node
    tree, solver = trees.flat_tree(Y.shape[1]), solve.Options(False, 1.0, 1e-2, 0.0, 50, 0.3, -1.0)
    thresholds = np.array([0.0, 0.1], np.float32)
    rows = np.arange(n_rows) * len(X) // n_rows
    found = sampled(X, Y, tree, n_rows, solver, thresholds, seed)
    alone = sampled(X[rows], Y[rows], tree, n_rows, solver, thresholds, seed)
    for name in ("weights", "features", "reach", "reached"):
        np.testing.assert_array_equal(found[name], alone[name])


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_a_sample_of_all_siblings_keeps_what_training_keeps(seed, logistic):
    """Solved to the end, the weights are unique: counts agree but for those on the very threshold."""
    X, Y = problem(seed)
    tree = trees.flat_tree(Y.shape[1])
    solver = solve.Options(logistic, 1.0, 1e-4, 0.0, 2000, 0.3, -1.0)
    thresholds = np.array([0.01, 0.1, 0.3], np.float32)
    found = sampled(X, Y, tree, int(Y.any(axis=1).sum()), solver, thresholds, seed)
    dense = _core.train_tree(
        *matrices(X, Y), tree, {**vars(solver), "threshold": -1.0, "seed": seed, "most_entries": 0}, 1, None
    )  # fmt: skip
    block = np.abs(dense["weights"].reshape(-1, Y.shape[1]))
    for at, threshold in enumerate(thresholds):
        kept = block > threshold
        doubtful = np.count_nonzero(np.abs(block - threshold) < 0.01)
        assert np.abs(found["weights"][:, at] - kept.sum(axis=0)).sum() <= doubtful
        assert abs(int(found["features"][0, at]) - kept.any(axis=1).sum()) <= doubtful
    own, together, _ = tree_size.reach(X, Y, tree.child_ptr, tree.label, thresholds)
    np.testing.assert_array_equal(found["reached"], together)
    np.testing.assert_array_equal(found["reach"], own[1:])
    assert (found["seconds"] >= 0).all()
