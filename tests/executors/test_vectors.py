"""Divided work on rows with vectors gives the model of undivided work, byte for byte."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelwood import CraftForest, LdsmForest, LinearTree, OneVsRest

MODELS = {
    "label tree": LinearTree(n_trees=2, arity=4, max_leaf=8, vector_weight=0.5),
    "one-vs-rest": OneVsRest(),
    "craft": CraftForest(n_trees=3, max_leaf=20),
    "ldsm": LdsmForest(n_trees=2, max_nodes=30, epochs=1),
}


@pytest.fixture(params=["dense", "float16", "blocks"])
def embedded(request, many_labels):
    """Vectors that show the labels, alone or beside words."""
    words, Y = many_labels[0][:600], many_labels[1][:600]
    random = np.random.default_rng(0)
    vectors = (Y @ random.standard_normal((Y.shape[1], 24)) + random.standard_normal((600, 24))).astype(np.float32)
    kinds = {"dense": vectors, "float16": vectors.astype(np.float16), "blocks": {"words": words, "vectors": vectors}}
    return kinds[request.param], sp.csr_array(Y)


@pytest.mark.parametrize("name", MODELS)
def test_divided_work_gives_the_same_bytes(name, embedded, backwards, saved):
    model = clone(MODELS[name]).set_params(n_jobs=1)
    alone = saved(model.fit(*embedded))
    assert saved(model.fit(*embedded, executor=backwards)) == alone
    assert len(backwards.names) >= 2


@pytest.mark.parametrize("name", MODELS)
def test_shards_predict_as_the_model_does(name, embedded, backwards, monkeypatch):
    X, Y = embedded
    model = clone(MODELS[name]).set_params(n_jobs=1).fit(X, Y)
    monkeypatch.setattr("labelwood.executors.predict_shards._SHARD_ROWS", 250)
    for ours, theirs in zip(model.predict_topk(X, 7), model.predict_topk(X, 7, executor=backwards), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(backwards.names) == 3
