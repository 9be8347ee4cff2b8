"""Votes of the training rows of the nearest vectors against the twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.second_look import vote
from scipy import sparse

from labelwood import FormatError, _core
from labelwood.run_context import RunContext
from labelwood.scoring.similar_rows import PREFIX, SimilarRows
from labelwood.sparse import from_scipy
from labelwood.validation.features import as_features

N_LABELS = 7


def by_label(labels, scores):
    return {int(label): float(score) for label, score in zip(labels, scores, strict=True) if label >= 0}


def matrices(random, n_rows, n_queries, width):
    # Powers of two of unit length: products are exact, so that ties are ties in both.
    X = np.zeros((n_rows, width), np.float32)
    X[np.arange(n_rows), random.integers(width, size=n_rows)] = random.choice([-1, 1], n_rows)
    rows = (random.integers(-2, 3, (n_queries, width)) / 2).astype(np.float32)
    return X, rows, (random.random((n_rows, N_LABELS)) < 0.2).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.sampled_from([1, 5, 48, 49, 130]),
    width=st.sampled_from([1, 3, 16, 33]),
    n_neighbors=st.integers(1, 60),
    n_threads=st.integers(1, 3),
)
def test_votes_are_those_of_the_twin(seed, n_rows, width, n_neighbors, n_threads):
    random = np.random.default_rng(seed)
    X, rows, Y = matrices(random, n_rows, 70, width)
    labels = from_scipy(sparse.csr_array(Y))
    bits = X.astype(np.float16).view(np.uint16)
    found = _core.vote_of_similar_vectors(rows, bits, labels, n_neighbors, N_LABELS, n_threads, None)
    for number, row in enumerate(rows.astype(float)):
        wanted = vote(row, X.astype(float), Y, width, n_neighbors)
        for (ids, scores), one in zip((found[:2], found[2:]), wanted, strict=True):
            own = by_label(ids[number], scores[number])
            assert own.keys() == one.keys()
            np.testing.assert_allclose([own[label] for label in own], [one[label] for label in own], rtol=1e-5)


def test_neither_threads_nor_the_batch_change_a_bit():
    random = np.random.default_rng(0)
    X, rows = (random.standard_normal((n, 40)).astype(np.float32) for n in (500, 200))
    labels = from_scipy(sparse.csr_array((random.random((500, N_LABELS)) < 0.3).astype(np.float32)))
    index = SimilarRows.learn(as_features({"v": X}, owner="test"), labels, 20)
    whole = as_features({"v": rows}, owner="test")
    expected = index.lists(whole, 5, RunContext(n_threads=1))
    for again in (index.lists(whole, 5, RunContext(n_threads=3)),):
        assert [top.scores.tobytes() for top in again] == [top.scores.tobytes() for top in expected]
    for row in (0, 63, 64, 199):
        alone = index.lists(whole.rows(row, row + 1), 5, RunContext(n_threads=1))
        assert [top.scores.tobytes() for top in alone] == [top.scores[row].tobytes() for top in expected]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_words_and_vectors_each_give_two_lists(dtype):
    E = np.eye(4, dtype=dtype)
    words = sparse.csr_array(np.eye(4, 6, dtype=np.float32))
    labels = from_scipy(sparse.csr_array(np.eye(4, dtype=np.float32)))
    both = as_features({"words": words, "vectors": E[::-1].copy()}, owner="test")
    index = SimilarRows.learn(both, labels, 2)
    lists = index.lists(both, 2, RunContext())
    assert index.n_lists == len(lists) == 4
    assert [top.labels[:, 0].tolist() for top in lists] == [[0, 1, 2, 3]] * 4
    dense = SimilarRows.learn(as_features({"v": E}, owner="test"), labels, 2)
    assert dense.n_lists == len(dense.lists(as_features({"v": E}, owner="test"), 2, RunContext())) == 2
    assert SimilarRows.learn(from_scipy(words), labels, 2).n_lists == 2


def test_saved_vectors_come_back_and_damaged_ones_are_refused():
    E = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    labels = from_scipy(sparse.csr_array(np.eye(6, 3, dtype=np.float32)))
    X = as_features({"v": E}, owner="test")
    index = SimilarRows.learn(X, labels, 3)
    arrays = index.arrays()
    again = SimilarRows.restore(arrays, 3, 3, 5)
    assert again.lists(X, 3, RunContext())[0].scores.tolist() == index.lists(X, 3, RunContext())[0].scores.tolist()
    good = arrays[PREFIX + "vectors"]
    for bad in (good.astype(np.float32), good[:5], good * np.float16(np.nan), good[0], np.tile(good, 2), good[:, :0]):
        with pytest.raises(FormatError, match="the vectors of similar rows must be 6 finite rows"):
            SimilarRows.restore({**arrays, PREFIX + "vectors": bad}, 3, 3, 5)


def test_rows_of_zeros_have_no_neighbors():
    labels = from_scipy(sparse.csr_array(np.ones((3, 2), np.float32)))
    index = SimilarRows.learn(as_features({"v": np.eye(3, dtype=np.float32)}, owner="test"), labels, 3)
    found = index.lists(as_features({"v": np.zeros((1, 3), np.float32)}, owner="test"), 2, RunContext())
    assert [top.labels.tolist() for top in found] == [[[-1, -1]]] * 2
