"""The router against its twin, and the checks of a packed forest."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import routed_forest as twin

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.explain.forest import murmur3
from labelwood.methods.forest.base import idf
from labelwood.packed import routed_forest
from labelwood.packed.routed_forest import Paths, RoutedForest, Routing, narrow, prepare
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, from_scipy

SHAPES = st.fixed_dictionaries(
    {
        "n_trees": st.integers(1, 4),
        "projection": st.sampled_from(["none", "hash", "gaussian"]),
        "per_node": st.booleans(),
        "threshold": st.sampled_from([None, 0.0, 0.6]),
        "dtype": st.sampled_from(["float16", "float32"]),
        "fill": st.sampled_from([0.5, 1.0]),
        "empty": st.sampled_from([0.0, 0.5]),
    }
)


def random_forest(
    random,
    *,
    n_trees=3,
    n_features=30,
    n_labels=9,
    projection="none",
    per_node=False,
    threshold=None,
    dtype="float32",
    n_columns=17,
    fill=0.5,
    empty=0.0,
    arity=3,
    hyperplanes=False,
) -> RoutedForest:
    """Trees of random shape; the share `empty` of the vectors has no entries, the others `fill` of them.

    With `hyperplanes`, which needs an arity of 2, second children have no entries.
    """
    n_columns = 0 if projection == "none" else n_columns
    width = n_columns or n_features
    child_ptr = [n_trees]
    while len(child_ptr) <= child_ptr[-1]:
        count = 0 if len(child_ptr) > 12 * n_trees else int(random.integers(0, arity + 1))
        child_ptr.append(child_ptr[-1] + (0 if count == 1 else count))
    n_nodes = child_ptr[-1]
    n_inner = int((np.diff(child_ptr) > 0).sum())

    def rows(count, n_cols, fill=0.5, empty=0.0, every=1):
        mask = random.random((count, n_cols)) < fill
        mask[np.arange(count) % every > 0] = False
        mask[random.random(count) < empty] = False
        ptr = np.concatenate([[0], mask.sum(axis=1).cumsum()]).astype(np.int64)
        return ptr, np.nonzero(mask)[1].astype(np.int32), random.random(int(ptr[-1])).astype(np.float32)

    weight_ptr, columns, weights = rows(n_nodes - n_trees, width, fill, empty, every=2 if hyperplanes else 1)
    leaf_ptr, labels, values = rows(n_nodes - n_inner, n_labels)
    n_seeds = 0 if projection == "none" else n_inner if per_node else n_trees
    return narrow(
        {
            "child_ptr": np.array(child_ptr, np.int32),
            "weight_ptr": np.concatenate([np.zeros(n_trees, np.int64), weight_ptr]),
            "weight_features": columns,
            "weights": weights - np.float32(0.5),
            "bias": (random.random(n_nodes) - 0.5).astype(np.float32),
            "leaf_ptr": leaf_ptr,
            "leaf_labels": labels,
            "leaf_values": values,
            "seeds": random.integers(0, 2**32, n_seeds, dtype=np.uint32),
        },
        routing=Routing(
            threshold=threshold,
            projection=projection,
            n_columns=n_columns,
            seed_per_node=per_node,
            leaf_votes=bool(random.integers(2)),
        ),
        n_features=n_features,
        n_labels=n_labels,
        weight_dtype=dtype,
        leaf_dtype=dtype,
    ).check()


def random_rows(random, n_rows, n_cols, density=0.4) -> CSR:
    dense = random.normal(size=(n_rows, n_cols)) * (random.random((n_rows, n_cols)) < density)
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.bincount(rows, minlength=n_rows).cumsum()]).astype(np.int64)
    return CSR(indptr, columns.astype(np.int32), dense[rows, columns].astype(np.float32), n_cols).check()


def leaves_of(paths: Paths, row: int, tree: int, n_trees: int) -> list[int]:
    at = row * n_trees + tree
    return paths.nodes[paths.ptr[at] : paths.ptr[at + 1]].tolist()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), shape=SHAPES)
def test_router_is_its_twin(seed, shape):
    random = np.random.default_rng(seed)
    forest = random_forest(random, **shape)
    X = random_rows(random, 12, forest.n_features)
    dense = X.to_scipy().toarray().astype(np.float64)
    paths = forest.paths(X, RunContext(n_threads=1))
    for row in range(X.n_rows):
        for tree in range(forest.n_trees):
            assert leaves_of(paths, row, tree, forest.n_trees) == twin.route(forest, dense[row], tree)
    labels, scores = forest.topk(X, forest.n_labels, RunContext(n_threads=2))
    for row in range(X.n_rows):
        expected = twin.scores(forest, dense[row])
        offered = labels[row] >= 0
        np.testing.assert_allclose(scores[row][offered], expected[labels[row][offered]], rtol=1e-5)
        assert set(labels[row][offered]) == set(np.flatnonzero(expected > 0))


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("threshold", [None, 0.1])
def test_batches_of_any_size_go_the_same_way(threshold, long):
    """Long vectors are scattered for a batch and searched for one row; the leaves are the same."""
    random = np.random.default_rng(5)
    forest = random_forest(random, n_features=4000 if long else 30, threshold=threshold)
    X = random_rows(random, 500, forest.n_features, density=0.001 if long else 0.4)
    whole = forest.paths(X, RunContext(n_threads=2))
    labels, scores = forest.topk(X, 4, RunContext(n_threads=2))
    for row in range(0, X.n_rows, 25):
        alone = X.rows(row, row + 1)
        one = forest.paths(alone, RunContext(n_threads=1))
        for tree in range(forest.n_trees):
            assert leaves_of(one, 0, tree, forest.n_trees) == leaves_of(whole, row, tree, forest.n_trees)
        top = forest.topk(alone, 4, RunContext(n_threads=1))
        np.testing.assert_array_equal(top.labels[0], labels[row])
        np.testing.assert_array_equal(top.scores[0], scores[row])


@pytest.mark.parametrize("arity", [12, 24, 45])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("projection", "per_node"), [("none", False), ("hash", False), ("hash", True)])
def test_large_nodes_go_the_same_way_when_they_get_blocks(projection, per_node, dtype, arity):
    random = np.random.default_rng(3)
    shape = {"projection": projection, "per_node": per_node, "dtype": dtype, "arity": arity}
    forest = random_forest(random, n_features=900, n_columns=900, **shape)
    assert arity == 12 or np.diff(forest.child_ptr).max() > 16  # more than are scored at once
    _check_that_blocks_change_nothing(random, forest)


@pytest.mark.parametrize(("arity", "hyperplanes"), [(2, False), (2, True), (4, False)])
@pytest.mark.parametrize("threshold", [None, 0.0])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("projection", ["none", "hash"])
def test_nodes_of_few_children_go_the_same_way_when_they_get_blocks(projection, dtype, threshold, arity, hyperplanes):
    random = np.random.default_rng(4)
    shape = {"projection": projection, "dtype": dtype, "arity": arity, "threshold": threshold}
    forest = random_forest(random, n_features=3000, n_columns=3000, hyperplanes=hyperplanes, **shape)
    assert (np.diff(forest.weight_ptr)[forest.n_trees :][1::2].max() == 0) == hyperplanes
    _check_that_blocks_change_nothing(random, forest)


def _check_that_blocks_change_nothing(random, forest):
    X = random_rows(random, 130, forest.n_features, density=0.05)
    n_trees, run = forest.n_trees, RunContext(n_threads=1)
    before = [forest.paths(X.rows(row, row + 1), run).nodes.tolist() for row in range(60)]
    assert forest._router.n_blocks == 0
    whole = forest.paths(X, run)
    assert forest._router.n_blocks > 0
    for row, first in enumerate(before):
        again = forest.paths(X.rows(row, row + 1), run).nodes.tolist()
        assert first == again == [leaf for tree in range(n_trees) for leaf in leaves_of(whole, row, tree, n_trees)]
    dense = X.to_scipy().toarray().astype(np.float64)
    for row in range(100, 130, 10):
        for tree in range(n_trees):
            assert leaves_of(whole, row, tree, n_trees) == twin.route(forest, dense[row], tree)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), shape=SHAPES, n_labels=st.sampled_from([9, 3000]), k=st.integers(1, 12))
def test_the_best_of_the_allowed_labels(seed, shape, n_labels, k):
    random = np.random.default_rng(seed)
    forest = random_forest(random, n_labels=n_labels, **shape)
    X = random_rows(random, 6, forest.n_features)
    dense = X.to_scipy().toarray().astype(np.float64)
    run = RunContext(n_threads=1)
    run.allowed = np.flatnonzero(random.random(n_labels) < 0.3).astype(np.int32)
    labels, scores = forest.topk(X, k, run)
    for row in range(X.n_rows):
        expected = np.zeros(n_labels)
        expected[run.allowed] = twin.scores(forest, dense[row])[run.allowed]
        wanted = np.sort(expected[expected > 0])[::-1][:k]
        np.testing.assert_allclose(scores[row][: len(wanted)], wanted, rtol=1e-5)
        found = labels[row][labels[row] >= 0]
        assert len(found) == len(wanted)
        np.testing.assert_allclose(expected[found], wanted, rtol=1e-5)


def test_many_labels_are_summed_like_few():
    random = np.random.default_rng(4)
    forest = random_forest(random, n_labels=5000)
    X = random_rows(random, 10, forest.n_features)
    dense = X.to_scipy().toarray().astype(np.float64)
    labels, scores = forest.topk(X, 50, RunContext(n_threads=1))
    for row in range(X.n_rows):
        expected = twin.scores(forest, dense[row])
        np.testing.assert_allclose(scores[row], np.sort(expected)[::-1][:50], rtol=1e-5)
        np.testing.assert_allclose(scores[row], expected[labels[row]], rtol=1e-5)


def test_the_hash_is_murmur3():
    # Published vectors: four zero bytes with seeds 0 and 1, and 0x21436587 as four bytes.
    assert murmur3([0], 0)[0] == 0x2362F9DE
    assert murmur3([0x87654321], 0)[0] == 0xF55B516B
    assert murmur3([0x87654321], 0x5082EDEE)[0] == 0x2362F9DE


def test_hashing_spreads_columns_and_signs():
    matrix = twin.projection_matrix("hash", 20_000, 50, seed=7)
    assert (np.abs(matrix).sum(axis=1) == 1).all()
    filled = np.abs(matrix).sum(axis=0)
    assert filled.min() > 300
    assert filled.max() < 500
    assert abs(matrix.sum()) < 600
    normal = twin.projection_matrix("gaussian", 400, 50, seed=7)
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03


def test_tree_views():
    forest = random_forest(np.random.default_rng(0))
    assert (forest.parent[: forest.n_trees] == -1).all()
    for node in range(forest.n_trees, forest.n_nodes):
        parent = forest.parent[node]
        assert forest.child_ptr[parent] <= node < forest.child_ptr[parent + 1]
    deepest = max(len(forest.path_to(leaf)) for leaf in forest.leaves)
    assert forest.depth == deepest - 1
    assert forest.path_to(int(forest.leaves[-1]))[-1] == forest.leaves[-1]


def test_shrinking_keeps_the_largest():
    forest = random_forest(np.random.default_rng(1))
    small = forest.shrink(vector_size=3, leaf_size=2, dtype="float16").check()
    assert small.nbytes < forest.nbytes
    for node in range(forest.n_trees, forest.n_nodes):
        columns, weights = forest.vector(node)
        kept, values = small.vector(node)
        order = np.argsort(-np.abs(weights), kind="stable")[:3]
        np.testing.assert_array_equal(kept, np.sort(columns[order]))
        np.testing.assert_array_equal(values, weights[np.isin(columns, kept)].astype(np.float16))
    for leaf in forest.leaves:
        labels, values = forest.leaf(leaf)
        kept, _ = small.leaf(leaf)
        np.testing.assert_array_equal(kept, np.sort(labels[np.argsort(-values, kind="stable")[:2]]))


def test_idf_and_normalised_rows():
    X = random_rows(np.random.default_rng(2), 50, 8)
    weights = idf(X)
    counts = np.bincount(X.indices, minlength=8)
    np.testing.assert_allclose(weights, 1 + np.log(51 / (1 + counts)), rtol=1e-6)
    rows = prepare(X, weights, normalize=True).to_scipy()
    np.testing.assert_allclose(np.sqrt((rows**2).sum(axis=1)), 1.0, rtol=1e-5)


@given(
    st.lists(st.lists(st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-10, 10, width=32)), max_size=30)),
    st.sampled_from([0.1, 0.5, 0.9, 0.95, 0.999]),
    st.sampled_from([0, 3, 10]),
    st.sampled_from([1e-30, 1.0, 1e37]),
)
def test_the_largest_share_of_a_row_is_its_twin(rows, share, least, scale):
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    values = np.array([value * scale for row in rows for value in row], np.float32)
    kept_ptr, kept = _core.keep_share(ptr, values, share, least)
    for number in range(len(rows)):
        found = kept[kept_ptr[number] : kept_ptr[number + 1]] - ptr[number]
        assert found.tolist() == twin.cut_row(values[ptr[number] : ptr[number + 1]], share, least)


def test_prepared_rows_are_cut_after_weighting_and_before_scaling(monkeypatch):
    monkeypatch.setattr(routed_forest, "SHORT_ROW", 1)
    X = from_scipy(sp.csr_array(np.array([[3, 4, 0, 1], [0, 0, 0, 0]], np.float32)))
    weights = np.array([2, 1, 1, 1], np.float32)  # squares 36, 16, -, 1
    rows = prepare(X, weights, normalize=True, row_share=0.9).to_scipy().toarray()
    np.testing.assert_allclose(rows, [[6 / 52**0.5, 4 / 52**0.5, 0, 0], [0, 0, 0, 0]], rtol=1e-6)
    rows = prepare(X, weights, normalize=False, row_share=0.6).to_scipy().toarray()
    np.testing.assert_array_equal(rows, [[6, 0, 0, 0], [0, 0, 0, 0]])


def test_short_rows_are_not_cut():
    X = random_rows(np.random.default_rng(3), 20, 8)
    np.testing.assert_array_equal(prepare(X, np.empty(0, np.float32), normalize=False, row_share=0.5).data, X.data)


def spoilt(name, change):
    def spoil(forest: RoutedForest) -> RoutedForest:
        array = getattr(forest, name).copy()
        return replace(forest, **{name: change(array)})

    return spoil


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    "spoil",
    [
        spoilt("child_ptr", put(0, 0)),
        spoilt("child_ptr", put(1, 0)),
        spoilt("child_ptr", put(-1, 10_000)),
        spoilt("child_ptr", lambda a: a[:-1]),
        spoilt("child_ptr", lambda a: np.arange(len(a), dtype=np.int32)),  # every node is its own child
        spoilt("child_ptr", lambda a: a.astype(np.int64)),
        spoilt("weight_ptr", put(-1, 10_000)),
        spoilt("weight_ptr", put(5, -1)),
        spoilt("weight_ptr", put(1, 2)),
        spoilt("weight_features", put(0, 30)),
        spoilt("weight_features", lambda a: a[::-1].copy()),
        spoilt("weights", put(0, np.nan)),
        spoilt("weights", lambda a: a[1:]),
        spoilt("bias", put(0, np.inf)),
        spoilt("bias", lambda a: a[1:]),
        spoilt("leaf_ptr", lambda a: a[:-1]),
        spoilt("leaf_labels", put(0, 9)),
        spoilt("leaf_values", put(0, -1.0)),
        spoilt("seeds", lambda a: np.zeros(1, np.uint32)),
        spoilt("feature_weights", lambda a: np.zeros(3, np.float32)),
    ],
)
def test_a_broken_forest_is_refused(spoil):
    forest = random_forest(np.random.default_rng(0))
    with pytest.raises(FormatError, match="RoutedForest: "):
        spoil(forest).check()


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": "high"},
        {"threshold": float("nan")},
        {"normalize": 1},
        {"seed_per_node": None},
        {"projection": "svd"},
        {"n_columns": 5},
        {"projection": "hash"},
        {"n_columns": 2**31, "projection": "hash"},
    ],
)
def test_broken_routing_is_refused(change):
    assert Routing.restore(Routing().facts()) == Routing()
    with pytest.raises(FormatError, match="RoutedForest: "):
        Routing.restore({**Routing().facts(), **change})
