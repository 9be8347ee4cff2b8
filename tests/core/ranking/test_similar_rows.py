"""Votes of similar training rows against their twin."""

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

N_COLS, N_LABELS = 9, 7


def matrix(random, n_rows, n_cols, share):
    # Multiples of 1/8: sums are exact in any order, so that ties are ties in both.
    return (random.integers(-2, 9, (n_rows, n_cols)) / 8 * (random.random((n_rows, n_cols)) < share)).astype(np.float32)


def by_label(labels, scores):
    return {int(label): float(score) for label, score in zip(labels, scores, strict=True) if label >= 0}


def test_a_case_worked_by_hand():
    """Two of three rows share a column with the query; the votes are the squared cosines 1 and 0.5."""
    X = from_scipy(sparse.csr_array([[2.0, 0, 0], [3.0, 3.0, 0], [0, 0, 1.0]]))
    Y = from_scipy(sparse.csr_array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]]))
    voted, nearest = SimilarRows.learn(X, Y, 5).lists(from_scipy(sparse.csr_array([[1.0, 0, 0]])), 3, RunContext())
    assert voted.labels.tolist() == nearest.labels.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(voted.scores, [[1.0, 0.5 / 1.5, 0]], rtol=1e-6)
    np.testing.assert_allclose(nearest.scores, [[1.0, np.sqrt(0.5), 0]], rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_terms=st.integers(1, N_COLS),
    n_neighbors=st.integers(1, 12),
    n_threads=st.integers(1, 2),
)
def test_votes_are_those_of_the_twin(seed, n_terms, n_neighbors, n_threads):
    random = np.random.default_rng(seed)
    X, Y = matrix(random, 30, N_COLS, 0.5), (random.random((30, N_LABELS)) < 0.2).astype(np.float32)
    rows = matrix(random, 70, N_COLS, 0.5)
    postings = from_scipy(sparse.csr_array(X.T))
    labels = from_scipy(sparse.csr_array(Y))
    found = _core.vote_of_similar_rows(
        from_scipy(sparse.csr_array(rows)), postings, labels, n_terms, n_neighbors, N_LABELS, n_threads, None
    )
    for number, row in enumerate(rows.astype(float)):
        wanted = vote(row, X.astype(float), Y, n_terms, n_neighbors)
        for (ids, scores), one in zip((found[:2], found[2:]), wanted, strict=True):
            own = by_label(ids[number], scores[number])
            assert own.keys() == one.keys()
            np.testing.assert_allclose([own[label] for label in own], [one[label] for label in own], rtol=1e-5)
            assert (np.diff(scores[number]) <= 0).all()


def test_common_columns_are_left_out():
    """A column of every row finds nothing; with few rows, no column is too common."""
    X = sparse.csr_array(np.column_stack([np.ones(400), np.arange(400) == 7]).astype(np.float32))
    Y = from_scipy(sparse.csr_array(np.ones((400, 1), np.float32)))
    many = SimilarRows.learn(from_scipy(X), Y, 5)
    assert np.diff(many.postings.indptr).tolist() == [0, 1]
    few = SimilarRows.learn(from_scipy(X[:50]), Y.rows(0, 50), 5)
    assert np.diff(few.postings.indptr).tolist() == [50, 1]


def test_a_damaged_index_is_refused():
    X = from_scipy(sparse.csr_array(np.eye(4, dtype=np.float32)))
    index = SimilarRows.learn(X, X, 5)
    arrays = index.arrays()
    assert SimilarRows.restore(arrays, 5, 4, 4).postings.indices.tolist() == index.postings.indices.tolist()
    with pytest.raises(FormatError, match="must have 5 columns"):
        SimilarRows.restore(arrays, 5, 4, 5)
    with pytest.raises(FormatError, match="float32"):
        SimilarRows.restore({**arrays, PREFIX + "data": arrays[PREFIX + "data"].astype(np.float64)}, 5, 4, 4)
    with pytest.raises(ValueError, match="CSR"):
        SimilarRows.restore({**arrays, PREFIX + "labels.indices": arrays[PREFIX + "labels.indices"] + 1}, 5, 4, 4)
