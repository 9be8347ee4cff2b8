"""Units: divided work gives the model of undivided work, byte for byte."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from labelwood import (
    CraftForest,
    FastXmlForest,
    GraphForest,
    LabelwoodError,
    LdsmForest,
    LinearTree,
    OneVsRest,
    OnlineForest,
)
from labelwood.methods.label_tree import subtrees, tree_units
from labelwood.packed import tree_shape

MODELS = {
    "balanced": LinearTree(n_trees=3, arity=4, max_leaf=8),
    "exact weights": LinearTree(arity=8, max_leaf=20, weight_threshold=None),
    "int8": LinearTree(arity=3, max_leaf=10, weight_dtype="int8"),
    "huffman": LinearTree(tree="huffman", arity=3, loss="logistic"),
    "kmeans": LinearTree(tree="kmeans", arity=6, normalize=False),
    "nothing kept": LinearTree(arity=4, max_leaf=8, weight_threshold=1e6),
    "vectors kept whole": LinearTree(arity=4, max_leaf=8, cluster_features=None),
    "one-vs-rest": OneVsRest(),
    "one-vs-rest, exact weights": OneVsRest(weight_threshold=None),
    "one-vs-rest, int8": OneVsRest(weight_dtype="int8", bias=0, intercept=0),
    "one-vs-rest, float32": OneVsRest(weight_dtype="float32"),
    "one-vs-rest, nothing kept": OneVsRest(weight_threshold=1e6, weight_dtype="int8"),
    "craft": CraftForest(n_trees=5, max_leaf=20),
    "craft, seeds by node": CraftForest(n_trees=4, max_leaf=20, diversity="DxDy"),
    "craft, no projection": CraftForest(n_trees=3, max_leaf=20, projection="none", rerank=True),
    "graph": GraphForest(n_trees=3, max_leaf=50),
    "fastxml": FastXmlForest(n_trees=3, propensity=True),
    "ldsm": LdsmForest(n_trees=4, max_nodes=60, epochs=2),
    "online": OnlineForest(n_trees=3, tree={"policy": "random", "max_leaf": 10, "warm_share": 0.2}),
}


@pytest.mark.parametrize("name", MODELS)
def test_divided_work_gives_the_same_bytes(name, many_labels, backwards, saved):
    model = clone(MODELS[name]).set_params(n_jobs=1)
    alone = saved(model.fit(*many_labels))
    assert saved(model.fit(*many_labels, executor=backwards)) == alone
    assert len(backwards.names) >= 3
    assert saved(model.set_params(n_jobs=2).fit(*many_labels, executor="threads"))[2] == alone[2]


@pytest.mark.parametrize("name", ["balanced", "int8", "craft", "ldsm", "online"])
def test_shards_predict_as_the_model_does(name, many_labels, backwards, monkeypatch):
    X, Y = many_labels
    model = clone(MODELS[name]).set_params(n_jobs=1).fit(X, Y)
    monkeypatch.setattr("labelwood.executors.predict_shards._SHARD_ROWS", 400)
    for ours, theirs in zip(model.predict_topk(X, 7), model.predict_topk(X, 7, executor=backwards), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(backwards.names) == 4
    assert model.predict_topk(X[:0], 3, executor=backwards)[0].shape == (0, 3)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 200), st.integers(2, 6), st.integers(1, 9))
def test_every_node_is_trained_once(seed, n_labels, arity, max_leaf):
    """Parts cover the inner nodes, each once, and every label leads from its upper leaf into its part."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, n_labels)
    tree = (
        tree_shape.huffman_tree(counts + 1, arity=arity)
        if seed % 2 and n_labels > 1
        else tree_shape.random_tree(n_labels, arity=arity, max_leaf=max_leaf, seed=seed)
    )
    division = subtrees.divide(tree, counts)
    inner = np.concatenate([part.ids[part.tree.inner] for part in division.parts])
    np.testing.assert_array_equal(np.sort(inner), tree.inner)
    for part in division.parts:
        part.tree.check(int((part.tree.label >= 0).sum()))
        parents = part.ids[part.tree.parent[1:]]
        np.testing.assert_array_equal(parents, tree.parent[part.ids[1:]])
    upper = division.parts[0]
    leaf_of = dict(zip(upper.tree.label.tolist(), upper.ids.tolist(), strict=True))
    for label in range(n_labels):
        number = division.part_of[label]
        part = division.parts[number]
        at = int(np.flatnonzero(part.tree.label == division.label_in_part[label])[0])
        assert tree.label[part.ids[at]] == label
        if number > 0:
            assert leaf_of[int(division.label_in_upper[label])] == part.ids[0]


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 400), st.integers(2, 40), st.integers(1, 60), st.integers(1, 100))
def test_every_group_of_siblings_is_in_one_unit(seed, n_labels, arity, max_leaf, n_parts):
    """The nodes and pieces of all units together are the inner nodes, each once and whole."""
    counts = np.random.default_rng(seed).integers(0, 50, n_labels)
    tree = tree_shape.random_tree(n_labels, arity=arity, max_leaf=max_leaf, seed=seed)
    division = subtrees.divide(tree, counts, n_parts)
    shares = tree_units.shares_of(division, n_parts)
    trained = np.zeros(tree.n_nodes)
    for share in shares:
        assert 0 <= share.piece < share.n_pieces
        trained[division.parts[share.part].ids[share.nodes]] += 1 / share.n_pieces
    np.testing.assert_allclose(trained[tree.inner], 1)
    assert trained.sum() == pytest.approx(len(tree.inner))
    assert sum(share.cost for share in shares) == pytest.approx(sum(part.cost for part in division.parts))


def trained_units(executor):
    return sum(name.startswith("tree") for name in executor.names)


def test_more_workers_get_more_units(many_labels, backwards, saved, tmp_path):
    """The model stays the same; a checkpoint keeps its units when fewer workers go on."""
    model = LinearTree(arity=4, max_leaf=2, n_jobs=1)
    alone = saved(model.fit(*many_labels))
    assert saved(model.fit(*many_labels, executor=backwards)) == alone
    few, backwards.names = trained_units(backwards), []
    backwards.n_workers = lambda: 40
    assert saved(model.fit(*many_labels, executor=backwards, checkpoint=tmp_path / "done")) == alone
    assert trained_units(backwards) > 2 * few
    again = model.fit(*many_labels, checkpoint=tmp_path / "done", resume=True)
    assert saved(again) == alone


def test_rows_in_a_file_may_be_sent_out(many_labels, backwards, saved, tmp_path):
    """What arrives elsewhere is memory, which must not be treated as pages of a file."""
    from labelwood.data import Dataset, load, save
    from labelwood.sparse import from_scipy

    X, Y = many_labels
    save(tmp_path / "rows.lw", Dataset(from_scipy(X), from_scipy(Y)))
    dataset = load(tmp_path / "rows.lw")
    model = LinearTree(n_trees=2, arity=4, max_leaf=10, n_jobs=1)
    alone = saved(model.fit(X, Y))
    assert saved(model.fit(dataset.X, dataset.Y, executor=backwards)) == alone
    assert saved(model.fit(dataset.X, dataset.Y, checkpoint=tmp_path / "done")) == alone


def test_an_executor_that_is_none_is_refused(many_labels):
    with pytest.raises(LabelwoodError, match="LinearTree: executor must be 'threads', 'ray'"):
        LinearTree().fit(*many_labels, executor="slurm")


def test_joblib_is_respected_by_forests(many_labels, saved):
    """Processes of joblib's own grow the same forest; where nothing is configured, it is not asked."""
    joblib = pytest.importorskip("joblib")
    from labelwood import executors

    model = CraftForest(n_trees=4, max_leaf=20, n_jobs=1)
    alone = saved(model.fit(*many_labels))
    assert executors.joblib_executor() is None
    with joblib.parallel_config("loky", n_jobs=2):
        assert isinstance(executors.joblib_executor(), executors.JoblibExecutor)
        assert saved(model.fit(*many_labels)) == alone
    with joblib.parallel_config("threading", n_jobs=2):
        assert executors.joblib_executor() is None
