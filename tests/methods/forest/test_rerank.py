"""Re-ranking for the tail, which every forest offers."""

import numpy as np
import pytest

from labelwood import CraftForest, FastXmlForest, FormatError, GraphForest, LdsmForest, load
from labelwood.run_context import RunContext
from labelwood.sparse import from_scipy
from labelwood.storage.model_directory import read_model, write_model

FORESTS = (CraftForest, FastXmlForest, GraphForest, LdsmForest)


@pytest.mark.parametrize("method", FORESTS)
def test_reranking_orders_the_candidates_by_the_means(method, planted, planted_test, tmp_path):
    """Against the formula, dense and row by row; and the means are saved with the model."""
    model = method(n_trees=5, n_jobs=1, rerank=True).fit(planted.X, planted.Y)
    labels, scores = model.predict_topk(planted_test.X, 5)
    X, rows = (model.forest_.prepare(from_scipy(part.X)).to_scipy().toarray() for part in (planted_test, planted))
    X, rows = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (X, rows))
    means = planted.Y.toarray().T @ rows
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    tree = model.forest_.topk(from_scipy(planted_test.X), 24, RunContext())
    for i, row in enumerate(X):
        found = tree.labels[i][tree.labels[i] >= 0]
        distance = ((row - means[found]) ** 2).sum(axis=1)
        wanted = tree.scores[i][: len(found)] ** 0.8 * (1 + np.exp(15 * distance)) ** -0.2
        best = np.sort(wanted)[::-1][:5]
        np.testing.assert_allclose(scores[i], np.pad(best, (0, 5 - len(best))), rtol=1e-3)
        assert (np.diff(scores[i]) <= 0).all()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").predict_topk(planted_test.X, 5)
    assert again[0].tolist() == labels.tolist()
    assert again[1].tobytes() == scores.tobytes()
    manifest, arrays = read_model(tmp_path / "model")
    write_model(tmp_path / "forged", manifest, {**arrays, "means.indices": arrays["means.indices"] - 9})
    with pytest.raises(FormatError):
        method.load(tmp_path / "forged")


@pytest.mark.parametrize("method", FORESTS)
def test_reranking_finds_rare_labels(method, planted_of):
    """One row of a label among many: its mean row is the row itself."""
    data = planted_of(n_rows=300, n_labels=30)
    Y = data.Y.tolil()
    Y[1:, 0] = 0
    Y[0, 0] = 1
    plain, tail = (method(n_trees=10, n_jobs=1, rerank=rerank).fit(data.X, Y.tocsr()) for rerank in (False, True))
    ranks = [np.flatnonzero(m.predict_topk(data.X[[0]], 30)[0][0] == 0) for m in (plain, tail)]
    assert len(ranks[1]) == 1
    assert ranks[1][0] <= ranks[0][0]
