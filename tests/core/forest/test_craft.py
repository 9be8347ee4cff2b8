"""The CRAFTML kernel against its twin, node by node."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import craft_forest as twin
from reference.routed_forest import rows_of_nodes

from labelwood import CraftForest
from labelwood.packed.routed_forest import RoutedForest
from labelwood.sparse import CSR, from_scipy


def random_data(random, n_rows, n_features, n_labels):
    """Binary features and labels: the ties that real data has."""
    X = (random.random((n_rows, n_features)) < 0.3).astype(np.float32)
    Y = (random.random((n_rows, n_labels)) < 0.25).astype(np.float32)
    Y[Y.sum(axis=1) == 0, 0] = 1  # rows without labels are not used
    return X, Y


def csr(dense) -> CSR:
    import scipy.sparse as sp

    return from_scipy(sp.csr_array(dense))


def options_of(model: CraftForest, n_features: int, n_labels: int) -> twin.Options:
    none = model.projection == "none"

    def capped(columns: int, n_input: int) -> int:
        return min(columns, n_input) if model.projection == "gaussian" else columns

    return twin.Options(
        k=model.arity,
        n_leaf=model.max_leaf,
        n_s=model.sample,
        rounds=model.kmeans_rounds,
        projection=model.projection,
        x_columns=n_features if none else capped(model.feature_columns, n_features),
        y_columns=n_labels if none else capped(model.label_columns, n_labels),
        x_per_node="Dx" in model.diversity,
        y_per_node="Dy" in model.diversity,
        cosine=model.metric == "cosine",
        centroid_share=model.centroid_share,
        centroid_least=model._SHORT_CENTROID,
        centroid_size=model.centroid_size or 0,
        centroid_rows=model.centroid_rows,
        seed=model.random_state,
    )


def assert_same_tree(forest: RoutedForest, tree: int, root: twin.Node) -> None:
    pending = [(tree, root)]
    while pending:
        node, expected = pending.pop()
        children = range(forest.child_ptr[node], forest.child_ptr[node + 1])
        assert len(children) == len(expected.children)
        pending += zip(children, expected.children, strict=True)
        if expected.mean is not None:
            labels, values = forest.leaf(node)
            dense = np.zeros(forest.n_labels)
            dense[labels] = values
            np.testing.assert_allclose(dense, expected.mean, rtol=1e-6)
        columns, weights = forest.vector(node)
        assert columns.tolist() == sorted(expected.vector)
        np.testing.assert_allclose(weights, [expected.vector[c] for c in columns.tolist()], rtol=1e-5)
        assert forest.bias[node] == pytest.approx(expected.bias, rel=1e-5)


def assert_twin(seed: int, short: int = 0, **parameters) -> None:
    random = np.random.default_rng(seed)
    X, Y = random_data(random, 60, 20, 8)
    model = CraftForest(
        **{"n_trees": 2, "max_leaf": 4, "arity": 3, "weight_dtype": "float32", "n_jobs": 1, **parameters}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CraftForest, "_SHORT_CENTROID", short)
        forest = model.set_params(random_state=seed).fit(X, Y).forest_.check()
        options = options_of(model, 20, 8)
    rows = forest.prepare(csr(X)).to_scipy().toarray()
    assert forest.depth > 1
    for tree in range(2):
        assert_same_tree(forest, tree, twin.grow(rows, Y, options, tree))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    arity=st.integers(2, 19),
    rounds=st.integers(1, 3),
    diversity=st.sampled_from(["SxSy", "SxDy", "DxSy", "DxDy"]),
    columns=st.integers(3, 20),
    sample=st.sampled_from([10, 30, 1000]),
    short=st.sampled_from([0, 5, 100]),
    centroid=st.tuples(
        st.sampled_from([0.3, 0.7, 0.95, 1.0]), st.sampled_from([None, 3, 10]), st.sampled_from([1, 20, 100])
    ),
)
def test_kernel_is_its_twin(seed, arity, rounds, diversity, columns, sample, short, centroid):
    assert_twin(
        seed,
        short,
        arity=arity,
        kmeans_rounds=rounds,
        diversity=diversity,
        feature_columns=columns,
        label_columns=columns,
        sample=sample,
        centroid_share=centroid[0],
        centroid_size=centroid[1],
        centroid_rows=centroid[2],
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("projection", ["hash", "none", "gaussian"])
@pytest.mark.parametrize("diversity", ["SxSy", "DxDy"])
def test_variants_are_their_twins(metric, projection, diversity):
    assert_twin(11, metric=metric, projection=projection, diversity=diversity)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(30, 200))
def test_propositions_1_and_2_count_the_nodes_and_entries_of_a_binary_tree(seed, n_rows):
    """A level has at most n rows, so n_v sums to at most n times the levels; m_T is l_T - 1; leaves have at most n s_y
    entries and centroids m_T k d'_x."""
    random = np.random.default_rng(seed)
    X = from_scipy(sp.random_array((n_rows, 40), density=0.2, rng=random, format="csr", dtype=np.float32))
    Y = random.random((n_rows, 12)) < 0.2
    Y[:, 0] |= ~Y.any(axis=1)
    model = CraftForest(
        **{**CraftForest.PRESETS["paper"], "arity": 2, "n_trees": 2}, n_jobs=1, random_state=seed % 1000
    )
    forest = model.fit(X, Y).forest_
    passed, is_inner = rows_of_nodes(forest, X), np.diff(forest.child_ptr) > 0
    n_trees, n_columns = forest.n_trees, 40
    assert is_inner.sum() == (~is_inner).sum() - n_trees
    assert (passed[:n_trees] == n_rows).all()
    assert passed[~is_inner].sum() == n_trees * n_rows
    assert passed[is_inner].sum() <= n_trees * n_rows * forest.depth
    assert forest.leaf_ptr[-1] <= n_trees * Y.sum()
    assert forest.weight_ptr[-1] <= is_inner.sum() * 2 * n_columns
