"""Counting an untrained tree, against the twin."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import tree_size

from labelwood.data.synth import Shape, synth
from labelwood.methods.label_tree.training_rows import TrainingRows
from labelwood.packed import tree_shape
from labelwood.run_context import RunContext


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 80), st.integers(1, 200), st.integers(1, 30), st.integers(1, 3))
def test_counts_match_the_twin(seed, n_rows, n_features, n_labels, n_threads):
    data = synth(Shape(n_rows, n_labels, n_features, words_per_row=8), seed=seed)
    tree = tree_shape.random_tree(n_labels, arity=3, max_leaf=4, seed=seed)
    plan = TrainingRows(data.X).count(data.Y, tree, RunContext(n_threads=n_threads))
    twin = tree_size.count(data.X.to_scipy().toarray(), data.Y.to_scipy().toarray(), tree.child_ptr, tree.label)
    for kernel, expected in zip((plan.used, plan.entries, plan.rows), twin, strict=True):
        np.testing.assert_array_equal(kernel, expected)
