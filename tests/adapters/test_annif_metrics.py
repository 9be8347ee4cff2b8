"""F1@5 and NDCG against those of ``annif eval`` on the same predictions."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import metrics
from labelwood.sparse import TopK, from_scipy

pytest.importorskip("annif", reason="annif is not installed; use make test-adapters")

N_DOCUMENTS, N_SUBJECTS, LIMIT = 300, 40, 10


@pytest.mark.parametrize("seed", range(3))
def test_f1_and_ndcg_are_those_of_annif(seed):
    """Lists of up to ten subjects, short ones and empty ones among them; documents have one to fifteen subjects."""
    from annif.eval import EvaluationBatch
    from annif.suggestion import SuggestionBatch

    random = np.random.default_rng(seed)
    labels = np.full((N_DOCUMENTS, LIMIT), -1, np.int32)
    scores = np.zeros((N_DOCUMENTS, LIMIT), np.float32)
    truth = sp.lil_array((N_DOCUMENTS, N_SUBJECTS), dtype=np.float32)
    for document in range(N_DOCUMENTS):
        n = random.integers(0, LIMIT + 1)
        labels[document, :n] = random.permutation(N_SUBJECTS)[:n]
        scores[document, :n] = np.sort(random.random(n) + 0.01)[::-1]
        truth[document, random.permutation(N_SUBJECTS)[: random.integers(1, 16)]] = 1
    listed = labels >= 0
    rows = np.repeat(np.arange(N_DOCUMENTS), listed.sum(axis=1))
    given = sp.csr_array((scores[listed], (rows, labels[listed])), shape=(N_DOCUMENTS, N_SUBJECTS))
    judge = EvaluationBatch(range(N_SUBJECTS))
    judge.evaluate_many(SuggestionBatch(given), [truth.rows[document] for document in range(N_DOCUMENTS)])
    wanted = judge.results(metrics=["F1@5", "NDCG"])
    Y, top = from_scipy(truth.tocsr()), TopK(labels, scores)
    assert metrics.f1_at_k(Y, top, 5) == pytest.approx(wanted["F1@5"], rel=1e-6)
    assert metrics.ndcg_of_all_at_k(Y, top, LIMIT) == pytest.approx(wanted["NDCG"], rel=1e-6)
