"""The second look of a ranker against its twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.second_look import add_up, describe, match_names
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier

from labelwood.run_context import RunContext
from labelwood.scoring.second_look import LabelTables, SecondLook, learn_trees
from labelwood.sparse import TopK, from_scipy
from labelwood.validation.label_texts import LabelRows

N_LABELS, N_COLS, WIDTH = 12, 9, 5


def lists_of(random, n_rows):
    """The lists of one member: up to WIDTH labels, best first, padded."""
    labels = np.full((n_rows, WIDTH), -1, np.int32)
    scores = np.zeros((n_rows, WIDTH), np.float32)
    for row in range(n_rows):
        n = random.integers(0, WIDTH + 1)
        labels[row, :n] = random.permutation(N_LABELS)[:n]
        scores[row, :n] = np.sort(random.random(n))[::-1]
    return TopK(labels, scores)


def problem(seed, n_members, n_rows=70):
    random = np.random.default_rng(seed)
    X = (random.random((n_rows, N_COLS)) * (random.random((n_rows, N_COLS)) < 0.5)).astype(np.float32)
    Y = (random.random((30, N_LABELS)) < 0.2).astype(np.float32)
    n_names = random.integers(0, 3, N_LABELS)
    vectors = (random.random((n_names.sum(), N_COLS)) * (random.random((n_names.sum(), N_COLS)) < 0.4)) + 1e-3
    names = LabelRows(np.concatenate([[0], np.cumsum(n_names)]), from_scipy(sparse.csr_array(vectors)))
    known = (random.random((30, N_COLS)) < 0.3).astype(np.float32)
    tables = LabelTables.learn(*(from_scipy(sparse.csr_array(part)) for part in (known, Y)), names)
    return X, Y, known.sum(axis=0), tables, [lists_of(random, n_rows) for _ in range(n_members)]


def named(top, row):
    return [(int(i), float(s)) for i, s in zip(top.labels[row], top.scores[row], strict=True) if i >= 0]


def tree_at(trees, node):
    """A packed tree as nested tuples."""
    child = int(trees.children[node])
    if child < 0:
        return float(trees.values[node])
    return int(trees.features[node]), trees.thresholds[node], tree_at(trees, child), tree_at(trees, child + 1)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n_members=st.integers(1, 3), n_threads=st.integers(1, 2))
def test_features_are_those_of_the_twin(seed, n_members, n_threads):
    X, Y, n_rows, tables, lists = problem(seed, n_members)
    look = SecondLook.untaught(tables, n_members)
    found = look.describe(from_scipy(sparse.csr_array(X)), lists, RunContext(n_threads=n_threads))
    vectors = tables.names.to_scipy().toarray().astype(float)
    names = [vectors[a:b] for a, b in zip(tables.name_ptr[:-1], tables.name_ptr[1:], strict=True)]
    together = tables.together.to_scipy().toarray().astype(float)
    for row in range(len(X)):
        by_name = match_names(X[row].astype(float), names, WIDTH)
        proposed = [named(top, row) for top in lists]
        proposed += [by_name] if len(vectors) else []
        counts = Y.sum(axis=0)
        wanted = describe(X[row].astype(float), proposed, n_members, WIDTH, counts, together, names, n_rows)
        own = slice(found.ptr[row], found.ptr[row + 1])
        assert found.labels[own].tolist() == list(wanted)
        if wanted:
            np.testing.assert_allclose(found.features[own], list(wanted.values()), rtol=2e-5, atol=1e-6)
    assert found.features.shape[1] == len(look.feature_groups())


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 12))
def test_the_order_is_that_of_the_sums(seed, k):
    X, _, _, tables, lists = problem(seed, 2)
    rows = from_scipy(sparse.csr_array(X))
    empty = SecondLook.untaught(tables, 2)
    found = empty.describe(rows, lists, RunContext())
    hits = np.random.default_rng(seed).random(len(found.labels)) < 0.4
    trees = learn_trees(found.features, hits, n_trees=4, run=RunContext(seed=1))
    flat = [tree_at(trees, root) for root in trees.roots]
    sums = np.array([add_up(flat, vector, trees.start) for vector in found.features])
    np.testing.assert_allclose(trees.sums(found.features), sums, rtol=1e-12)
    look = SecondLook(tables, trees, 2)
    one, two = (look.order(rows, lists, k, RunContext(n_threads=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.scores, two.scores)
    for row in range(len(X)):
        own = slice(found.ptr[row], found.ptr[row + 1])
        chances = (1 / (1 + np.exp(-sums[own]))).astype(np.float32)
        order = np.lexsort((found.labels[own], -chances))[:k]
        np.testing.assert_array_equal(one.labels[row, : len(order)], found.labels[own][order])
        np.testing.assert_allclose(one.scores[row, : len(order)], chances[order], rtol=1e-6)
        assert (one.labels[row, len(order) :] == -1).all()


def test_packed_trees_are_those_of_the_library():
    """The packed sums equal scikit-learn's decision function, also for values at a threshold."""
    random = np.random.default_rng(0)
    features = random.integers(0, 5, (3000, 6)).astype(np.float32) / 3
    hits = random.random(3000) < features[:, 0] * features[:, 1] / 3
    trees = learn_trees(features, hits, n_trees=20, run=RunContext(seed=7))
    same = HistGradientBoostingClassifier(
        max_iter=20,
        max_leaf_nodes=8,
        learning_rate=0.05,
        min_samples_leaf=50,
        l2_regularization=10.0,
        early_stopping=False,
        random_state=7,
    ).fit(features, hits)
    np.testing.assert_allclose(trees.sums(features), same.decision_function(features), rtol=1e-9)
    assert trees.n_trees == 20
    for vector in features[:20]:
        base, added = trees.contributions(vector)
        assert base + added.sum() == pytest.approx(trees.sums(vector[None])[0])


def test_many_candidates_give_the_same_trees_with_any_number_of_threads():
    """From 200,000 candidates on, scikit-learn may use the threads of the run."""
    random = np.random.default_rng(0)
    features = random.random((200_000, 3)).astype(np.float32)
    hits = random.random(200_000) < features[:, 0] ** 3
    one, two = (learn_trees(features, hits, n_trees=3, run=RunContext(n_threads=n)).arrays() for n in (1, 2))
    assert {name: array.tobytes() for name, array in one.items()} == {n: a.tobytes() for n, a in two.items()}
