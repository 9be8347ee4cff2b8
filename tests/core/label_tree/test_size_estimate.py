"""Counting an untrained tree, against the twin."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import tree_size

from labelwood import _core
from labelwood.packed import tree_shape
from labelwood.sparse import from_scipy


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 80), st.integers(1, 200), st.integers(1, 30), st.integers(1, 3))
def test_counts_match_the_twin(seed, n_rows, n_features, n_labels, n_threads):
    random = np.random.default_rng(seed)
    X = ((random.random((n_rows, n_features)) + 0.1) * (random.random((n_rows, n_features)) < 0.2)).astype(
        "f4"
    )
    Y = (random.random((n_rows, n_labels)) < 0.15).astype("f4")
    x, y = from_scipy(sp.csr_array(X)), from_scipy(sp.csr_array(Y))
    tree = tree_shape.random_tree(n_labels, arity=3, max_leaf=4, seed=seed)
    found = _core.count_tree(
        x.indptr, x.indices, x.data, x.n_cols, y.indptr, y.indices, y.n_cols, tree.child_ptr, tree.label, n_threads,
        None,
    )  # fmt: skip
    for kernel, twin in zip(found, tree_size.count(X, Y, tree.child_ptr, tree.label), strict=True):
        np.testing.assert_array_equal(kernel, twin)
