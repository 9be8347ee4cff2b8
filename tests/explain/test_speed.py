"""An explanation of an online model takes at most ten times as long as a suggestion, for rows as long as documents."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import OnlineForest, OnlineTree

N_ROWS, N_FEATURES, N_LABELS, WORDS = 1500, 20_000, 600, 200


def documents():
    random = np.random.default_rng(0)
    columns = (N_FEATURES * random.random((N_ROWS, WORDS)) ** 3).astype(np.int64)
    rows = np.repeat(np.arange(N_ROWS), WORDS)
    X = sp.csr_array((np.ones(N_ROWS * WORDS, np.float32), (rows, columns.ravel())), shape=(N_ROWS, N_FEATURES))
    return X, [[int(N_LABELS * value**2) for value in random.random(4)] for _ in range(N_ROWS)]


def seconds(call, rows):
    started = time.process_time()
    for row in rows:
        call(row, k=5)
    return time.process_time() - started


@pytest.mark.parametrize("method", [OnlineTree, OnlineForest])
def test_an_explanation_takes_at_most_ten_suggestions(method):
    X, Y = documents()
    model = method(n_jobs=1).fit(X, Y)
    rows = [X[[row]] for row in range(40)]
    rounds = [(seconds(model.explain, rows), seconds(model.predict_topk, rows)) for _ in range(5)]
    explained, suggested = (min(times) for times in zip(*rounds, strict=True))
    assert explained < 10 * suggested
