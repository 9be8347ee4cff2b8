"""Reliability, calibration error and the F1 of sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from labelwood.errors import LabelwoodError
from labelwood.metrics import calibration_error, reliability, set_scores
from labelwood.sparse import TopK, from_lists, from_scipy


def test_by_hand():
    Y = from_lists([[0], [1]], 3)
    top = TopK(np.array([[0, 1], [0, -1]], np.int32), np.array([[0.9, 0.3], [0.95, 0.0]], np.float32))
    found = reliability(Y, top, n_bins=2)
    np.testing.assert_allclose(found.score, [0.3, 0.925], rtol=1e-6)
    np.testing.assert_allclose(found.right, [0, 0.5])
    assert found.size.tolist() == [1, 2]
    assert calibration_error(Y, top, n_bins=2) == pytest.approx((0.3 + 2 * 0.425) / 3)


def test_scores_that_are_chances_have_little_error():
    random = np.random.default_rng(0)
    scores = random.random((50_000, 1)).astype(np.float32)
    Y = from_lists([[0] if right else [] for right in (random.random(50_000) < scores[:, 0]).tolist()], 1)
    top = TopK(np.zeros((50_000, 1), np.int32), scores)
    assert calibration_error(Y, top) < 0.01
    assert calibration_error(Y, TopK(top.labels, scores**3)) > 0.2


def test_bins_are_needed():
    with pytest.raises(LabelwoodError, match="n_bins must be at least 1"):
        reliability(from_lists([[0]], 1), TopK(np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32)), n_bins=0)


matrices = st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=5, max_size=5)


@given(matrices, matrices)
def test_sets_as_scikit_learn_scores_them(truth, predicted):
    import scipy.sparse as sp

    Y, said = np.array(truth, np.float32), np.array(predicted, np.float32)
    found = set_scores(from_scipy(sp.csr_array(Y)), from_scipy(sp.csr_array(said)))
    assert found["microF1"] == pytest.approx(f1_score(Y, said, average="micro", zero_division=0))
    assert found["microP"] == pytest.approx(precision_score(Y, said, average="micro", zero_division=0))
    assert found["microR"] == pytest.approx(recall_score(Y, said, average="micro", zero_division=0))
    tested = Y.sum(axis=0) > 0
    expected = f1_score(Y, said, average=None, zero_division=0)[tested].mean() if tested.any() else 0.0
    assert found["macroF1"] == pytest.approx(expected)


def test_sets_of_other_rows_are_refused():
    with pytest.raises(LabelwoodError, match="one row per predicted set; got 1 and 2"):
        set_scores(from_lists([[0]], 1), from_lists([[0], []], 1))
