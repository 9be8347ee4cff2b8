"""Label-tree kernels against their twins, and a few cases worked by hand."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import cluster, search, solve
from reference.rng import Rng, mix64

from labelwood import _core
from labelwood.packed import tree_shape
from labelwood.sparse import CSR, from_scipy

STORED = {"child_bytes": 4, "weight_bytes": 4, "piece": 0, "n_pieces": 1}


def planted(seed, n_rows, n_features, n_labels, density=0.4):
    """Random sparse unit rows and labels; no two numbers are equal, so that order is never in doubt."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    Y = rng.random((n_rows, n_labels)) < 0.3
    return X.astype(np.float32), Y


def csr(matrix) -> CSR:
    return from_scipy(sp.csr_array(matrix.astype(np.float32)))


def vectors_of(X, Y, most=0, n_threads=1):
    x, y = csr(X), csr(Y)
    *out, _ = _core.label_vectors(x, y, most, n_threads, None)
    return CSR(*out, x.n_cols).check()


def trained(X, Y, tree, options: solve.Options, threshold=-1.0, seed=0, n_threads=1, **stored):
    own = {**vars(options), "threshold": threshold, "seed": seed, "most_entries": 0, **STORED, **stored}
    return _core.train_tree(csr(X), csr(Y), tree, own, n_threads, None)


def test_random_numbers_match_the_twin_in_their_effect():
    """The shuffle of the twin is the textbook's: every item stays, and the stream depends on its key alone."""
    items = list(range(100))
    Rng(7, 3).shuffle(items)
    assert sorted(items) == list(range(100))
    again = list(range(100))
    Rng(7, 3).shuffle(again)
    other = list(range(100))
    Rng(7, 4).shuffle(other)
    assert items == again != other


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 20), st.integers(1, 12), st.integers(0, 4))
def test_label_vectors(seed, n_rows, n_features, n_labels, most):
    X, Y = planted(seed, n_rows, n_features, n_labels)
    expected = cluster.label_vectors(X.astype(np.float64), Y.astype(np.float64), most)
    for n_threads in (1, 3):
        found = vectors_of(X, Y, most, n_threads).to_scipy().toarray()
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_label_vectors_by_hand():
    X = np.array([[3, 0, 0], [0, 4, 0], [0, 0, 1]])
    Y = np.array([[1, 0], [1, 0], [0, 1]])
    found = vectors_of(X, Y).to_scipy().toarray()
    np.testing.assert_allclose(found, [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]], atol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 60), st.booleans(), st.integers(2, 6), st.integers(1, 9))
def test_grown_trees(seed, n_labels, balanced, arity, max_leaf):
    rng = np.random.default_rng(seed)
    V = rng.random((n_labels, 12)) * (rng.random((n_labels, 12)) < 0.6)
    V /= np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-9)
    V = V.astype(np.float32)
    v = csr(V)
    options = dict(balanced=balanced, arity=arity, max_leaf=max_leaf, max_depth=4, max_rounds=8, seed=seed)
    twin = cluster.grow(V.astype(np.float64), **options)
    for n_threads in (1, 3):
        parent, label = _core.grow_tree(v, options, n_threads, None)
        assert (parent.tolist(), label.tolist()) == (twin.parent, twin.label)
    tree = tree_shape.freeze(parent, label).check(n_labels)
    if balanced:
        assert np.diff(tree.child_ptr).max() <= max(arity, max_leaf, 2)
    else:
        assert tree.depth <= 4


def compare_with_twin(seed, n_rows, n_labels, options, atol):
    X, Y = planted(seed, n_rows, 8, n_labels)
    Y[0, 0] = True  # at least one positive, so that something is trained
    used = Y.any(axis=1)
    expected = solve.solve_node(X[used].astype(np.float64), Y[used], options, mix64(seed))
    found = trained(X, Y, tree_shape.flat_tree(n_labels), options, seed=seed)
    weights = found["weights"].reshape(-1, n_labels)
    for label, w in expected.items():
        np.testing.assert_allclose(weights[:, label], w[found["features"]], atol=atol)
        assert found["bias"][1 + label] == pytest.approx(w[-1] * options.bias + options.offset, abs=atol)
    absent = sorted(set(range(n_labels)) - set(expected))
    assert (weights[:, absent] == 0).all()
    assert (found["bias"][1 + np.array(absent, int)] < -100).all()


INTERCEPTS = [(1.0, 0.0), (0.3, -1.0), (0.0, -1.0)]


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.integers(1, 15),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from(INTERCEPTS),
    st.sampled_from([0.25, 1.0, 4.0]),
)
def test_solver_reaches_the_optimum(seed, n_rows, n_labels, logistic, intercept, cost):
    options = solve.Options(logistic, cost, 1e-3, 0.1, 300, *intercept)
    compare_with_twin(seed, n_rows, n_labels, options, atol=5e-3)


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("n_labels", [3, 7, 40])
@pytest.mark.parametrize("tolerance", [0.3, 0.5])  # 0.5: rows that no sibling holds are passed over
def test_solver_goes_the_way_of_the_twin(logistic, intercept, n_labels, tolerance):
    """Stopped early, both stand at the same place: same order of rows, same full and partial passes."""
    options = solve.Options(logistic, 1.0, tolerance, 0.1, 6, *intercept)
    compare_with_twin(11, 30, n_labels, options, atol=1e-4)


def test_solver_by_hand():
    """One row, one feature: w = alpha x, alpha (1 + 1/(2C)) = 1, so w = 2/3 for C = 1."""
    options = solve.Options(False, 1.0, 1e-6, 0.0, 100, 0.0, 0.0)
    found = trained(np.array([[1.0]]), np.array([[True]]), tree_shape.flat_tree(1), options)
    assert found["weights"].tolist() == pytest.approx([2 / 3])


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.2]))
def test_pruned_rows_are_the_dense_blocks_without_small_weights(seed, threshold):
    X, Y = planted(seed, 40, 10, 30)
    options = solve.Options(False, 1.0, 0.1, 0.1, 10, 0.3, -1.0)
    tree = tree_shape.random_tree(30, arity=4, max_leaf=8, seed=seed)
    dense = trained(X, Y, tree, options)
    sparse = trained(X, Y, tree, options, threshold=threshold, n_threads=2)
    np.testing.assert_array_equal(dense["bias"], sparse["bias"])
    for i, node in enumerate(tree.inner):
        n_children = tree.child_ptr[node + 1] - tree.child_ptr[node]
        block = dense["weights"][dense["weight_ptr"][i] : dense["weight_ptr"][i + 1]].reshape(-1, n_children)
        expected = np.zeros((10, n_children), np.float32)
        expected[dense["features"][dense["feature_ptr"][i] : dense["feature_ptr"][i + 1]]] = block
        expected[np.abs(expected) <= threshold] = 0
        found = np.zeros_like(expected)
        columns = sparse["features"][sparse["feature_ptr"][i] : sparse["feature_ptr"][i + 1]]
        starts = sparse["row_start"][sparse["feature_ptr"][i] : sparse["feature_ptr"][i + 1]].tolist()
        first, last = sparse["weight_ptr"][i], sparse["weight_ptr"][i + 1]
        for column, begin, end in zip(columns, starts, [*starts[1:], last - first], strict=True):
            assert end > begin  # a feature without a surviving weight is not stored
            entries = slice(first + begin, first + end)
            found[column, sparse["child"][entries]] = sparse["weights"][entries]
        np.testing.assert_array_equal(found, expected)


def searcher(tree, arrays, n_features, link):
    named = ("feature_ptr", "features", "weight_ptr", "row_start", "child", "weights", "bias")
    none = np.empty(0, np.float32)
    own = {"scale": none, "vector_weights": none, "vector_scale": none, "n_columns": 0}
    own |= {"link": link, "n_features": n_features}
    shape = {"child_ptr": tree.child_ptr, "label": tree.label, "inner_of": tree.inner_of}
    return _core.TreeSearcher({**shape, **{name: arrays[name] for name in named}, **own})


def margins_of(tree, arrays, row):
    """Margins of a node's children for one dense row, from dense blocks."""

    def margins(node):
        i = tree.inner_of[node]
        features = arrays["features"][arrays["feature_ptr"][i] : arrays["feature_ptr"][i + 1]]
        children = slice(tree.child_ptr[node], tree.child_ptr[node + 1])
        block = arrays["weights"][arrays["weight_ptr"][i] : arrays["weight_ptr"][i + 1]]
        weights = block.reshape(len(features), children.stop - children.start).astype(np.float64)
        return row[features] @ weights + arrays["bias"][children]

    return margins


def assert_same_lists(labels, scores, expected, tolerance=1e-5):
    """Equal scores in order; equal labels wherever the scores tell them apart."""
    found = labels[labels >= 0]
    assert len(found) == len(expected)
    wanted = np.array([score for _, score in expected])
    np.testing.assert_allclose(scores[: len(expected)], wanted, atol=tolerance)
    for position, (label, score) in enumerate(expected):
        if np.count_nonzero(np.abs(wanted - score) < 10 * tolerance) == 1 and position < len(expected) - 1:
            assert found[position] == label


@settings(max_examples=30)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 4), st.integers(1, 6), st.integers(1, 8), st.booleans()
)
@example(204, 38, 3, 2, 2, True)  # two nodes at the end of the beam differ by 1.7e-10
def test_search(seed, n_labels, link, beam_width, k, wide_batch):
    X, Y = planted(seed, 40, 10, n_labels)
    Y[:, 0] |= ~Y.any(axis=1)
    options = solve.Options(link == 0, 1.0, 0.1, 0.1, 5, 0.3, -1.0 if link else 0.0)
    tree = tree_shape.random_tree(n_labels, arity=3, max_leaf=4, seed=seed)
    arrays = trained(X, Y, tree, options, seed=seed)
    model = searcher(tree, arrays, 10, link)
    queries = X if wide_batch else X[:3]
    x = csr(queries)
    k = min(k, n_labels)
    pruned = searcher(tree, trained(X, Y, tree, options, threshold=0.0, seed=seed), 10, link)
    for exact in (False, True):
        labels, scores = model.search(x, k, beam_width, exact, 1, None)
        clear = []  # rows for which rounding does not decide which nodes are in the beam
        for i, row in enumerate(queries):
            shape, margins, gaps = (tree.child_ptr, tree.label), margins_of(tree, arrays, row), [1.0]
            expected = (
                search.uniform_cost_search(*shape, margins, k=k, link=link)
                if exact
                else search.beam_search(*shape, margins, k=k, beam_width=beam_width, link=link, gaps=gaps)
            )
            if min(gaps) > 1e-5:
                clear.append(i)
                assert_same_lists(labels[i], scores[i], expected)
        again = model.search(x, k, beam_width, exact, 3, None)
        np.testing.assert_array_equal(labels, again[0])
        np.testing.assert_array_equal(scores, again[1])
        _, sparse_scores = pruned.search(x, k, beam_width, exact, 1, None)
        np.testing.assert_allclose(sparse_scores[clear], scores[clear], atol=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 4), st.integers(1, 4), st.integers(1, 5))
def test_a_node_proposes_its_best_labels_only(seed, n_labels, link, beam_width, per_node):
    X, Y = planted(seed, 40, 10, n_labels)
    Y[:, 0] |= ~Y.any(axis=1)
    options = solve.Options(link == 0, 1.0, 0.1, 0.1, 5, 0.3, -1.0 if link else 0.0)
    tree = tree_shape.random_tree(n_labels, arity=3, max_leaf=6, seed=seed)
    arrays = trained(X, Y, tree, options, seed=seed)
    labels, scores = searcher(tree, arrays, 10, link).search(
        csr(X), n_labels, beam_width, False, 1, None, None, per_node
    )
    for i, row in enumerate(X):
        gaps = [1.0]
        found = search.beam_search(
            tree.child_ptr,
            tree.label,
            margins_of(tree, arrays, row),
            k=n_labels,
            beam_width=beam_width,
            link=link,
            gaps=gaps,
            per_node=per_node,
        )
        if min(gaps) > 1e-5:
            assert_same_lists(labels[i], scores[i], found)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 4), st.integers(1, 8), st.data())
def test_search_of_allowed_labels_scores_them_all(seed, n_labels, link, k, data):
    X, Y = planted(seed, 20, 10, n_labels)
    Y[:, 0] |= ~Y.any(axis=1)
    options = solve.Options(link == 0, 1.0, 0.1, 0.1, 5, 0.3, -1.0 if link else 0.0)
    tree = tree_shape.random_tree(n_labels, arity=3, max_leaf=4, seed=seed)
    arrays = trained(X, Y, tree, options, seed=seed)
    model = searcher(tree, arrays, 10, link)
    allowed = data.draw(st.sets(st.integers(0, n_labels - 1), min_size=1))
    ids = np.array(sorted(allowed), np.int32)
    labels, scores = model.search(csr(X), k, 1, False, 1, None, ids)
    for i, row in enumerate(X):
        margins = margins_of(tree, arrays, row)
        expected = search.score_allowed(tree.child_ptr, tree.label, margins, allowed=allowed, k=k, link=link)
        assert_same_lists(labels[i], scores[i], expected)
        assert set(labels[i][labels[i] >= 0]) <= allowed
    every = np.arange(n_labels, dtype=np.int32)
    free, bound = model.search(csr(X), k, 1, True, 1, None), model.search(csr(X), k, 1, True, 2, None, every)
    np.testing.assert_array_equal(free[0], bound[0])
    np.testing.assert_array_equal(free[1], bound[1])


def test_wide_beam_is_exact():
    X, Y = planted(5, 60, 12, 50)
    tree = tree_shape.random_tree(50, arity=3, max_leaf=4, seed=1)
    model = searcher(tree, trained(X, Y, tree, solve.Options(False, 1.0, 0.1, 0.1, 5, 0.3, -1.0)), 12, 0)
    x = csr(X)
    beam = model.search(x, 7, 1000, False, 1, None)
    exact = model.search(x, 7, 1, True, 1, None)
    np.testing.assert_array_equal(beam[0], exact[0])


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 6), st.integers(1, 6), st.integers(1, 8))
def test_average(seed, n_members, n_rows, width, k):
    rng = np.random.default_rng(seed)
    labels = np.stack([[rng.permutation(12)[:width] for _ in range(n_rows)] for _ in range(n_members)])
    scores = -np.sort(-rng.random(labels.shape).astype(np.float32), axis=2)
    labels[rng.random(labels.shape) < 0.1] = -1
    found = _core.average_topk(labels.astype(np.int32), scores, k)
    for row in range(n_rows):
        members = [
            [(int(a), float(b)) for a, b in zip(labels[m, row], scores[m, row], strict=True) if a >= 0]
            for m in range(n_members)
        ]
        assert_same_lists(found[0][row], found[1][row], search.average(members, k))


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_solves_alike(isa, tmp_path):
    """The same weights to rounding on every instruction set this machine has."""
    import os
    import subprocess
    import sys

    script = (
        "import sys, numpy as np; sys.path[:0] = sys.argv[2:]; import test_label_tree as t\n"
        "X, Y = t.planted(3, 50, 10, 30)\n"
        "for logistic in (False, True):\n"
        "    o = t.solve.Options(logistic, 1.0, 0.01, 0.1, 6, 0.3, -1.0)\n"
        "    w = t.trained(X, Y, t.tree_shape.flat_tree(30), o)['weights']\n"
        "    np.save(sys.argv[1] + str(int(logistic)), w)\n"
        "print(t._core.isa())"
    )
    here = Path(__file__).parent
    env = {**os.environ, "LABELWOOD_ISA": isa}
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "w"), str(here), str(here.parents[1])],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    if ran.stdout.strip() != isa:
        pytest.skip(f"this machine has no {isa}")
    X, Y = planted(3, 50, 10, 30)
    for logistic in (False, True):
        options = solve.Options(logistic, 1.0, 0.01, 0.1, 6, 0.3, -1.0)
        ours = trained(X, Y, tree_shape.flat_tree(30), options)["weights"]
        np.testing.assert_allclose(np.load(tmp_path / f"w{int(logistic)}.npy"), ours, atol=2e-3)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4]), st.sampled_from([1e-3, 1e-6, 1.0, 1e6, 1e9]))
def test_weights_are_stored_as_numpy_would_narrow_them(seed, child_bytes, size):
    """Long rows have small weights, down to subnormal halves; short rows large ones, up to infinite halves."""
    X, Y = planted(seed, 20, 8, 5)
    X = X * np.float32(size)
    options = solve.Options(False, 1.0, 0.1, 0.1, 5, 0.0, 0.0)
    wide = trained(X, Y, tree_shape.flat_tree(5), options, threshold=0.0)
    small = trained(X, Y, tree_shape.flat_tree(5), options, threshold=0.0, child_bytes=child_bytes, weight_bytes=2)
    assert small["child"].itemsize == child_bytes
    np.testing.assert_array_equal(small["child"], wide["child"])
    with np.errstate(over="ignore"):
        assert small["weights"].tobytes() == wide["weights"].astype(np.float16).tobytes()
    for name in ("features", "feature_ptr", "weight_ptr", "row_start", "bias"):
        assert small[name].tobytes() == wide[name].tobytes()


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4]), st.sampled_from([0.0, 0.1, 100.0]))
def test_int8_weights_are_multiples_of_a_number_per_node(seed, child_bytes, threshold):
    """Against the float weights of the same training: steps of 1/127 of a node's largest weight, without the zeros."""
    X, Y = planted(seed, 40, 12, 9)
    tree = tree_shape.random_tree(9, arity=3, max_leaf=3, seed=seed)
    options = solve.Options(False, 1.0, 0.1, 0.1, 5, 0.3, -1.0)
    wide = trained(X, Y, tree, options, threshold=threshold)
    small = trained(X, Y, tree, options, threshold=threshold, child_bytes=child_bytes, weight_bytes=1)
    assert small["child"].itemsize == child_bytes
    assert len(small["scale"]) == len(tree.inner)
    for node, scale in enumerate(small["scale"]):
        floats = wide["weights"][wide["weight_ptr"][node] : wide["weight_ptr"][node + 1]]
        own = slice(small["weight_ptr"][node], small["weight_ptr"][node + 1])
        assert scale == (np.abs(floats).max() / np.float32(127) if len(floats) else 1)
        steps = np.rint(floats / scale).astype(np.int8)
        np.testing.assert_array_equal(small["weights"][own], steps[steps != 0])
        children = wide["child"][wide["weight_ptr"][node] : wide["weight_ptr"][node + 1]]
        np.testing.assert_array_equal(small["child"][own], children[steps != 0])
    counts = np.diff(small["row_start"].astype(np.int64), append=0)
    firsts = small["feature_ptr"][1:][np.diff(small["feature_ptr"]) > 0] - 1
    assert (np.delete(counts, firsts) > 0).all(), "a feature has a weight"
