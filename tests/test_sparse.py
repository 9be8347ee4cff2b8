"""The door through which data enters: what is let in, what is refused, and in which words."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, from_lists
from labelwood.validation.features import as_features


def matrix(indptr, indices, data=None, n_cols=4) -> CSR:
    values = np.ones(len(indices)) if data is None else data
    return CSR(np.array(indptr, np.int64), np.array(indices, np.int32), np.array(values, np.float32), n_cols)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (matrix([], []), "must not be empty"),
        (matrix([0, 1], [0], [1.0, 2.0]), "same length"),
        (matrix([1, 1], [0]), "start at 0"),
        (matrix([0, 2], [0]), "end at the number"),
        (matrix([0, 2, 1, 2], [0, 1]), "never decrease"),
        (matrix([0, 1], [4]), r"\[0, 4\); got 4\.\.4"),
        (matrix([0, 1], [-1]), "got -1"),
        (matrix([0, 2], [1, 0]), "sorted and distinct"),
        (matrix([0, 2], [1, 1]), "sorted and distinct"),
        (matrix([0, 1], [0], [np.nan]), "finite"),
        (matrix([0, 1], [0], [-np.inf]), "finite"),
    ],
)
def test_broken_matrices_are_refused(broken, message):
    with pytest.raises(LabelwoodError, match=message):
        broken.check()


@given(st.lists(st.integers(-1, 5), max_size=6), st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_check_agrees_with_its_definition(indices, indptr):
    rows = list(pairwise(indptr))
    sound = (
        indptr[0] == 0
        and indptr[-1] == len(indices)
        and all(a <= b for a, b in rows)
        and all(0 <= i < 4 for i in indices)
        and all(indices[j] < indices[j + 1] for a, b in rows for j in range(a, b - 1))
    )
    if sound:
        assert matrix(indptr, indices).check().nnz == len(indices)
    else:
        with pytest.raises(LabelwoodError):
            matrix(indptr, indices).check()


def test_features_of_every_kind_become_the_same_matrix():
    dense = np.array([[0, 2.5, 0], [1, 0, 3]])
    wanted = as_features(dense, owner="Test")
    unsorted = sp.csr_array((np.array([2.5, 3.0, 1.0]), np.array([1, 2, 0]), np.array([0, 1, 3])), shape=(2, 3))
    doubled = sp.coo_array((np.array([1.5, 1.0, 1.0, 3.0]), ([0, 0, 1, 1], [1, 1, 0, 2])), shape=(2, 3))
    for given_ in (dense.tolist(), sp.csc_array(dense), sp.coo_matrix(dense), unsorted, doubled, wanted):
        found = as_features(given_, owner="Test")
        np.testing.assert_array_equal(found.to_scipy().toarray(), dense.astype(np.float32))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "two-dimensional.*1-d"),
        (sp.coo_array(np.ones(3)), "two-dimensional.*1-d"),
        (np.ones((2, 2, 2)), "3-d"),
        ([["a", "b"]], "real numbers"),
        (np.array([[1 + 2j]]), "real numbers"),
        (np.array([[np.nan]]), "NaN or infinity"),
        (sp.csr_array(np.array([[np.inf]])), "finite"),
        (np.ones((1, 3)), "has 3 features, but Test is expecting 2 features"),
    ],
)
def test_bad_features_are_refused(X, message):
    with pytest.raises(LabelwoodError, match=message):
        as_features(X, owner="Test", n_features=2 if np.shape(X) == (1, 3) else None)


def test_rows_and_take():
    whole = from_lists([[2, 0], [], [1, 1, 3]], 4)
    assert whole.rows(1, 3).indptr.tolist() == [0, 0, 2]
    picked = whole.take(np.array([2, 0, 2]))
    assert picked.check().indices.tolist() == [1, 3, 0, 2, 1, 3]
