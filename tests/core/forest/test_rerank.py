"""The re-ranker against its twin."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.rerank import combine
from scipy import sparse

from labelwood.run_context import RunContext
from labelwood.scoring.rerank import SHARE, SHARPNESS, TailReranker
from labelwood.sparse import TopK, from_scipy


def unit_rows(random, n_rows, n_cols, density):
    dense = random.random((n_rows, n_cols)) * (random.random((n_rows, n_cols)) < density)
    dense[:, 0] += 0.1
    return (dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_cols=st.sampled_from([5, 40, 3000]),
    k=st.integers(1, 12),
    n_threads=st.integers(1, 2),
    share=st.sampled_from([SHARE, 0.95]),
    unit=st.booleans(),
)
def test_kernel_is_its_twin(seed, n_cols, k, n_threads, share, unit):
    """Short means are gathered, long ones searched (3,000 columns); lists are shorter or longer than k."""
    random = np.random.default_rng(seed)
    n_labels, n_candidates = 20, 8
    X = unit_rows(random, 70, n_cols, 0.01 if n_cols == 3000 else 0.4)
    means = unit_rows(random, n_labels, n_cols, 0.6)
    labels = np.stack([random.permutation(n_labels)[:n_candidates] for _ in X]).astype(np.int32)
    scores = np.sort(random.random(labels.shape).astype(np.float32) + 0.01)[:, ::-1].copy()
    known = random.integers(0, n_candidates + 1, len(X))
    for row, count in enumerate(known):
        labels[row, count:], scores[row, count:] = -1, 0
    lengths = np.ones(n_labels, np.float32) if unit else random.random(n_labels).astype(np.float32)
    tail = TailReranker(from_scipy(sparse.csr_matrix(means)), lengths, share)
    means = means * lengths[:, None]
    found = tail.order(from_scipy(sparse.csr_matrix(X)), TopK(labels, scores), k, RunContext(n_threads=n_threads))
    for row, count in enumerate(known):
        wanted = combine(
            X[row].astype(float),
            means[labels[row, :count]].astype(float),
            scores[row, :count].astype(float),
            share=share,
            sharpness=SHARPNESS,
        )
        best = np.argsort(-wanted, kind="stable")[:k]
        n = len(best)
        np.testing.assert_allclose(found.scores[row, :n], wanted[best], rtol=1e-4)
        by_label = dict(zip(labels[row, :count].tolist(), wanted, strict=True))
        np.testing.assert_allclose([by_label[i] for i in found.labels[row, :n]], wanted[best], rtol=1e-4)
        assert (found.labels[row, n:] == -1).all()
        assert (found.scores[row, n:] == 0).all()
