"""CraftForest: its variants, its stopping rules, its size, its routes."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import CraftForest, LabelwoodError


def small(**parameters):
    return CraftForest(**{"n_trees": 10, "n_jobs": 1, **parameters})


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("diversity", ["SxSy", "SxDy", "DxSy", "DxDy"])
@pytest.mark.parametrize("projection", ["hash", "gaussian", "none"])
def test_every_variant_learns_saves_and_loads(planted, planted_test, tmp_path, metric, diversity, projection):
    model = small(metric=metric, diversity=diversity, projection=projection).fit(planted.X, planted.Y)
    assert model.score(planted_test.X, planted_test.Y) > 0.8
    model.save(tmp_path / "model")
    again = CraftForest.load(tmp_path / "model")
    for left, right in zip(model.predict_topk(planted_test.X), again.predict_topk(planted_test.X), strict=True):
        np.testing.assert_array_equal(left, right)


def test_leaves_hold_at_most_max_leaf_rows_and_their_means(planted):
    model = small(max_leaf=5, weight_dtype="float32").fit(planted.X, planted.Y)
    paths = model.paths(planted.X)
    n_rows, dense = planted.X.shape[0], planted.Y.toarray()
    assert (np.diff(paths.ptr) == 1).all(), "one leaf a tree"
    reached = paths.nodes.reshape(n_rows, model.n_trees)
    for tree in range(model.n_trees):
        for leaf in np.unique(reached[:, tree]):
            rows = reached[:, tree] == leaf
            alike = len(np.unique(dense[rows], axis=0)) == 1
            assert rows.sum() <= 5 or alike
            labels, values = model.forest_.leaf(leaf)
            np.testing.assert_allclose(values, dense[rows].mean(axis=0)[labels], rtol=1e-5)
            assert model.forest_.path_to(leaf)[0] == tree


def test_rows_with_the_same_labels_stay_together():
    X = sp.random_array((60, 30), density=0.2, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    Y = np.zeros((60, 3))
    Y[:, 1] = 1
    forest = small().fit(X, Y).forest_
    assert forest.n_nodes == forest.n_trees
    assert (forest.leaf_values == 1).all()


def test_scores_are_averaged_probabilities(planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    scores = model.predict_proba(planted_test.X, k=model.n_labels_)
    assert scores.data.min() > 0
    assert scores.data.max() <= 1
    mean_labels = planted.Y.sum() / planted.Y.shape[0]
    assert scores.sum() / scores.shape[0] == pytest.approx(mean_labels, rel=0.2)


def test_trees_of_a_forest_do_not_depend_on_their_number(planted):
    few, many = (small(n_trees=n).fit(planted.X, planted.Y).forest_ for n in (2, 5))
    np.testing.assert_array_equal(few.seeds, many.seeds[:2])
    assert len(set(many.seeds.tolist())) == 5
    for tree in range(2):
        children = [range(f.child_ptr[tree], f.child_ptr[tree + 1]) for f in (few, many)]
        assert len(children[0]) == len(children[1])
        for a, b in zip(*children, strict=True):
            np.testing.assert_array_equal(few.vector(a)[1], many.vector(b)[1])


def test_shrinking(planted, planted_test):
    model = small(centroid_share=1.0, centroid_size=None, weight_dtype="float32").fit(planted.X, planted.Y)
    before, quality = model.forest_.nbytes, model.score(planted_test.X, planted_test.Y)
    model.shrink(vector_size=12, leaf_size=4, dtype="float16")
    model.forest_.check()
    assert model.forest_.nbytes < before / 2
    assert np.diff(model.forest_.weight_ptr).max() == 12
    assert np.diff(model.forest_.leaf_ptr).max() <= 4
    assert model.score(planted_test.X, planted_test.Y) > quality - 0.1


def test_centroid_and_leaf_size_bound_the_model(planted):
    forest = small(centroid_size=7, centroid_rows=10**6, leaf_size=2).fit(planted.X, planted.Y).forest_
    assert np.diff(forest.weight_ptr).max() == 7
    assert np.diff(forest.leaf_ptr).max() == 2


def test_nodes_of_many_rows_keep_more_of_their_centroids(planted):
    some = small(centroid_share=1.0, centroid_size=7, centroid_rows=planted.X.shape[0] // 4)
    forest = some.fit(planted.X, planted.Y).forest_
    sizes, first = np.diff(forest.weight_ptr), forest.level_ptr[1:3]
    assert sizes[slice(*first)].tolist() == [28] * (first[1] - first[0])
    assert sizes[first[1] :].max() == 7  # a tenth of the rows, or fewer


def grown(rows, monkeypatch, share, short):
    monkeypatch.setattr(CraftForest, "_SHORT_CENTROID", short)
    model = small(n_trees=1, centroid_share=share, centroid_size=None, weight_dtype="float32")
    return model.fit(rows.X, rows.Y).forest_


def test_a_share_of_the_centroids_length_is_kept(planted, monkeypatch):
    kept, whole = (grown(planted, monkeypatch, share, 0) for share in (0.6, 1.0))
    for child in range(kept.child_ptr[0], kept.child_ptr[1]):  # the first split's centroids are the same
        columns, weights = kept.vector(child)
        all_columns, all_weights = whole.vector(child)
        assert set(columns) < set(all_columns)
        rest = np.square(all_weights).sum() - np.square(weights).sum()
        assert rest <= 0.4 * np.square(all_weights).sum() * (1 + 1e-6)
        smaller = np.square(weights).sum() - np.square(weights).min()
        assert smaller < 0.6 * np.square(all_weights).sum() * (1 + 1e-6), "one entry less would be too few"


def test_short_centroids_are_kept_whole(planted, monkeypatch):
    cut, short, whole = (
        np.diff(grown(planted, monkeypatch, *given).weight_ptr) for given in ((0.1, 0), (0.1, 12), (1.0, 0))
    )
    first = slice(1, 11)  # the first split's centroids are the same but for what is cut
    assert (short[first] == np.maximum(cut[first], np.minimum(whole[first], 12))).all()
    assert cut[first].min() < 12


def test_idf_is_learned_for_counts_only(planted):
    counts = (planted.X > 0).astype(np.float32)
    assert len(small().fit(counts, planted.Y).forest_.feature_weights) == planted.X.shape[1]
    assert len(small().fit(planted.X, planted.Y).forest_.feature_weights) == 0
    assert len(small(idf=True).fit(planted.X, planted.Y).forest_.feature_weights) == planted.X.shape[1]
    assert len(small(idf=False).fit(counts, planted.Y).forest_.feature_weights) == 0


def test_a_gaussian_projection_that_cannot_fit_is_refused():
    X, Y = sp.csr_array((3, 2**20), dtype=np.float32), np.eye(3)
    with pytest.raises(LabelwoodError, match="lower feature_columns or use projection='hash'"):
        small(projection="gaussian").fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"arity": 1}, "arity must be at least 2; got 1"),
        ({"projection": "svd"}, "projection must be one of"),
        ({"diversity": "sxsy"}, "diversity must be one of"),
        ({"centroid_size": 0}, "centroid_size must be at least 1; got 0"),
        ({"centroid_share": 1.5}, "centroid_share must be .*at most 1; got 1.5"),
        ({"sample": 1}, "sample must be at least 2; got 1"),
    ],
)
def test_bad_parameters(planted, parameters, message):
    with pytest.raises(LabelwoodError, match=f"CraftForest: {message}"):
        small(**parameters).fit(planted.X, planted.Y)
