"""`row_share`: a forest that cuts rows is the forest of the cut rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelwood import METHODS
from labelwood.packed.routed_forest import SHORT_ROW, prepare
from labelwood.sparse import from_scipy

EVERY = {"n_trees": 3, "n_jobs": 1, "idf": False, "normalize": False}


def rows(n=80, n_features=400):
    random = np.random.default_rng(3)
    X = random.random((n, n_features)) ** 6
    X[random.random((n, n_features)) < 0.5] = 0
    Y = np.zeros((n, 6), dtype=bool)
    Y[np.arange(n), np.arange(n) % 6] = True
    Y |= random.random((n, 6)) < 0.2
    return X.astype(np.float32), Y


@pytest.mark.parametrize("method", ["craft-forest", "graph-forest", "ldsm-forest"])
def test_cut_rows_are_those_of_the_share(method):
    X, Y = rows()
    cut = prepare(from_scipy(csr_array(X)), np.empty(0, np.float32), normalize=False, row_share=0.6).to_scipy()
    lengths = np.diff(cut.indptr)
    assert (lengths >= SHORT_ROW).all()
    assert lengths.sum() < 0.8 * np.count_nonzero(X)
    own = METHODS[method](row_share=0.6, **EVERY).fit(X, Y)
    whole = METHODS[method](row_share=1.0, **EVERY)
    labels, scores = own.predict_topk(X, k=6)
    expected, wanted = whole.fit(cut, Y).predict_topk(cut, k=6)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(scores, wanted)
    assert not np.array_equal(scores, whole.fit(X, Y).predict_topk(X, k=6)[1])
