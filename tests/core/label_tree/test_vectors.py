"""Rows with vectors: a hybrid row is a sparse row with the numbers of its vector as further columns.

So the twin of every kernel is the kernel's own twin on the sparse form, and nothing but rounding may differ.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import cluster, search, solve
from reference.rng import mix64

from labelwood import _core
from labelwood.hybrid import Hybrid, as_layout, beside, widened
from labelwood.packed import tree_shape
from labelwood.sparse import CSR, from_scipy

NONE = np.empty(0, np.float32)


def planted(seed, n_rows, n_sparse, width, n_labels, dtype=np.float32):
    """Hybrid rows with random numbers, labels, and the same rows as one dense array."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_sparse)) * (rng.random((n_rows, n_sparse)) < 0.4)
    vectors = as_stored(rng.standard_normal((n_rows, width)) / 3, dtype)
    Y = rng.random((n_rows, n_labels)) < 0.3
    Y[:, 0] |= ~Y.any(axis=1)
    hybrid = beside(csr(X), vectors)
    return hybrid, csr(Y), np.hstack([X.astype(np.float32), widened(vectors)]), Y


def as_stored(values, dtype):
    values = values.astype(np.float32)
    return (values.view(np.uint32) >> 16).astype(np.uint16) if dtype == "bfloat16" else values.astype(dtype)


def csr(matrix) -> CSR:
    return from_scipy(sp.csr_array(matrix.astype(np.float32)))


TYPES = st.sampled_from([np.float32, np.float16, "bfloat16"])


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 6), st.integers(1, 40), TYPES)
def test_sparse_and_dense_forms_are_the_same_rows(seed, n_rows, n_sparse, width, dtype):
    hybrid, _, dense, _ = planted(seed, n_rows, n_sparse, width, 3, dtype)
    whole = hybrid.to_csr().check()
    np.testing.assert_array_equal(whole.toarray(), dense)
    back = as_layout(whole, n_sparse, width)
    np.testing.assert_array_equal(back.vectors, widened(hybrid.vectors))
    np.testing.assert_array_equal(back.sparse.toarray(), hybrid.sparse.toarray())
    rows = np.random.default_rng(seed).integers(n_rows, size=5)
    np.testing.assert_array_equal(hybrid.take(rows).to_csr().toarray(), dense[rows])
    np.testing.assert_array_equal(hybrid.rows(0, n_rows // 2).to_csr().toarray(), dense[: n_rows // 2])


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 30), st.integers(0, 6), st.integers(1, 40), TYPES, st.integers(-18, 18))
def test_lengths(seed, n_rows, n_sparse, width, dtype, exponent):
    random = np.random.default_rng(seed)
    scale = (
        1.0 if dtype == np.float16 else 10.0 ** (2 * exponent)
    )  # squares of the largest and the smallest are no floats
    vectors = as_stored(random.standard_normal((n_rows, width)) * scale, dtype)
    found = beside(csr(np.zeros((n_rows, n_sparse))), vectors).lengths()
    np.testing.assert_allclose(found, np.linalg.norm(widened(vectors).astype(np.float64), axis=1), rtol=1e-12)
    for row in range(0, n_rows, 7):
        assert beside(csr(np.zeros((1, n_sparse))), vectors[row : row + 1]).lengths()[0] == found[row]


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 6), st.integers(1, 40), st.integers(1, 9), TYPES)
def test_label_vectors(seed, n_rows, n_sparse, width, n_labels, dtype):
    hybrid, y, dense, Y = planted(seed, n_rows, n_sparse, width, n_labels, dtype)
    expected = cluster.label_vectors(dense.astype(np.float64), Y.astype(np.float64))
    for n_threads in (1, 3):
        *sparse, vectors = _core.label_vectors(hybrid, y, 0, n_threads, None)
        found = np.hstack([CSR(*sparse, n_sparse).toarray(), vectors])
        np.testing.assert_allclose(found, expected, atol=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 60), st.booleans(), st.integers(0, 5), st.integers(1, 40))
def test_trees_grow_alike_from_both_forms(seed, n_labels, balanced, n_sparse, width):
    hybrid, y, *_ = planted(seed, 80, n_sparse, width, n_labels)
    *sparse, vectors = _core.label_vectors(hybrid, y, 0, 1, None)
    both = beside(CSR(*sparse, n_sparse), vectors)
    options = {"balanced": balanced, "arity": 4, "max_leaf": 5, "max_depth": 3, "max_rounds": 6, "seed": seed}
    grown = [_core.grow_tree(both, options, n_threads, None) for n_threads in (1, 3)]
    for first, second in zip(*grown, strict=True):
        np.testing.assert_array_equal(first, second)
    other = _core.grow_tree(both.to_csr(), options, 1, None)
    same = [set(map(tuple, np.stack(tree, axis=1).tolist())) for tree in (grown[0], other)]
    assert same[0] == same[1] or n_labels > 5  # near ties may fall otherwise by rounding
    assert sorted(grown[0][1][grown[0][1] >= 0].tolist()) == list(range(n_labels))


def trained(x, y, tree, options, threshold=-1.0, seed=0, n_threads=1, **scales):
    own = {
        **vars(options),
        "threshold": threshold,
        "seed": seed,
        "most_entries": 0,
        "child_bytes": 4,
        "weight_bytes": 4,
        "piece": 0,
        "n_pieces": 1,
    }
    return _core.train_tree(x, y, tree, own, n_threads, None, **scales)


def whole_weights(arrays, n_sparse, n_labels):
    """Weights [features, labels] of a flat tree whose sparse weights are all kept."""
    weights = np.zeros((n_sparse, n_labels), np.float32)
    weights[arrays["features"]] = arrays["weights"].reshape(-1, n_labels)
    return np.vstack([weights, arrays["vector_weights"].reshape(-1, n_labels)])


@settings(max_examples=30)
@given(
    st.integers(0, 10**6), st.integers(2, 60), st.integers(0, 6), st.integers(1, 50), st.integers(1, 40),
    st.booleans(), TYPES,
)  # fmt: skip
def test_solver_goes_the_way_of_the_twin(seed, n_rows, n_sparse, width, n_labels, logistic, dtype):
    hybrid, y, dense, Y = planted(seed, n_rows, n_sparse, width, n_labels, dtype)
    options = solve.Options(logistic, 1.0, 1e-3, 0.1, 3, 0.3, -1.0)
    tree = tree_shape.flat_tree(n_labels)
    arrays = trained(hybrid, y, tree, options)
    expected = solve.solve_node(dense.astype(np.float64), Y, options, mix64(0) ^ 0)
    found = whole_weights(arrays, n_sparse, n_labels)
    for child, weights in expected.items():
        np.testing.assert_allclose(found[:, child], weights[:-1], atol=5e-3)
        np.testing.assert_allclose(arrays["bias"][1 + child], -1.0 + 0.3 * weights[-1], atol=5e-3)
    again = trained(hybrid, y, tree, options, n_threads=3)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, again[name])


def test_factors_scale_both_parts():
    hybrid, y, dense, _ = planted(3, 50, 5, 20, 9)
    options = solve.Options(False, 1.0, 1e-3, 0.1, 30, 0.3, -1.0)
    rng = np.random.default_rng(0)
    scale, vector_scale = (rng.random(50).astype(np.float32) for _ in range(2))
    tree = tree_shape.flat_tree(9)
    scaled = trained(hybrid, y, tree, options, scale=scale, vector_scale=vector_scale)
    dense = np.hstack([dense[:, :5] * scale[:, None], dense[:, 5:] * vector_scale[:, None]])
    plain = trained(csr(dense), y, tree, options)
    expected = np.zeros((25, 9), np.float32)
    expected[plain["features"]] = plain["weights"].reshape(-1, 9)
    np.testing.assert_allclose(whole_weights(scaled, 5, 9), expected, atol=2e-3)


def searcher(tree, arrays, n_sparse, width, link, weights=None, scale=NONE):
    named = ("feature_ptr", "features", "weight_ptr", "row_start", "child", "weights", "bias")
    own = {"scale": NONE, "link": link, "n_features": n_sparse, "n_columns": width, "vector_scale": scale}
    own["vector_weights"] = arrays["vector_weights"] if weights is None else weights
    shape = {"child_ptr": tree.child_ptr, "label": tree.label, "inner_of": tree.inner_of}
    return _core.TreeSearcher({**shape, **{name: arrays[name] for name in named}, **own})


def margins_of(tree, arrays, row, n_sparse, width, weights):
    def margins(node):
        i, (first, last) = tree.inner_of[node], tree.child_ptr[node : node + 2]
        features = arrays["features"][arrays["feature_ptr"][i] : arrays["feature_ptr"][i + 1]]
        block = arrays["weights"][arrays["weight_ptr"][i] : arrays["weight_ptr"][i + 1]]
        own = row[features] @ block.reshape(len(features), last - first).astype(np.float64)
        of_vector = weights[(first - 1) * width : (last - 1) * width].reshape(width, last - first)
        return own + row[n_sparse:] @ of_vector.astype(np.float64) + arrays["bias"][first:last]

    return margins


@settings(max_examples=30)
@given(
    st.integers(0, 10**6), st.integers(1, 70), st.integers(0, 4), st.integers(1, 6), st.integers(0, 5),
    st.integers(1, 40), TYPES, st.sampled_from([np.float32, np.float16, np.int8]),
)  # fmt: skip
def test_search(seed, n_labels, link, beam_width, n_sparse, width, dtype, stored):
    hybrid, y, dense, _ = planted(seed, 40, n_sparse, width, n_labels, dtype)
    options = solve.Options(link == 0, 1.0, 0.1, 0.1, 5, 0.3, -1.0 if link else 0.0)
    tree = tree_shape.random_tree(n_labels, arity=3, max_leaf=24, seed=seed)
    arrays = trained(hybrid, y, tree, options, seed=seed)
    weights, scale = arrays["vector_weights"], NONE
    if stored == np.int8:
        scale = np.linspace(0.01, 0.02, len(tree.inner)).astype(np.float32)
        weights = np.random.default_rng(seed).integers(-100, 100, len(weights)).astype(np.int8)
    else:
        weights = weights.astype(stored)
    model = searcher(tree, arrays, n_sparse, width, link, weights, scale)
    plain = weights.astype(np.float64)
    if len(scale):
        plain *= np.repeat(scale, np.diff(tree.child_ptr)[tree.inner] * width)
    k = min(5, n_labels)
    for exact in (False, True):
        labels, scores = model.search(hybrid, k, beam_width, exact, 1, None)
        for i, row in enumerate(dense):
            margins, gaps = margins_of(tree, arrays, row, n_sparse, width, plain), [1.0]
            shape = tree.child_ptr, tree.label
            expected = (
                search.uniform_cost_search(*shape, margins, k=k, link=link)
                if exact
                else search.beam_search(*shape, margins, k=k, beam_width=beam_width, link=link, gaps=gaps)
            )
            if min(gaps) > 1e-4:
                np.testing.assert_allclose(scores[i], [score for _, score in expected], atol=1e-4)
            alone = model.search(hybrid.rows(i, i + 1), k, beam_width, exact, 1, None)
            np.testing.assert_array_equal(alone[0][0], labels[i])
            assert alone[1][0].tobytes() == scores[i].tobytes()  # whatever rows are beside it
        again = model.search(hybrid, k, beam_width, exact, 3, None)
        np.testing.assert_array_equal(labels, again[0])
        np.testing.assert_array_equal(scores, again[1])


def test_vectors_of_another_type_are_refused():
    hybrid, y, *_ = planted(3, 10, 2, 4, 3)
    options = solve.Options(False, 1.0, 0.1, 0.1, 5, 0.3, -1.0)
    for vectors in (hybrid.vectors.astype(np.float64), hybrid.vectors.T, hybrid.vectors[0]):
        wrong = Hybrid(hybrid.indptr, hybrid.indices, hybrid.data, 6, vectors)
        with pytest.raises(TypeError, match="incompatible function arguments"):
            trained(wrong, y, tree_shape.flat_tree(3), options)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_instruction_set_computes_alike(isa, dtype, tmp_path):
    script = (
        "import sys, numpy as np; sys.path[:0] = sys.argv[2:]; import test_vectors as t\n"
        "found = t.weights_and_scores(sys.argv[1])\n"
        "np.savez(sys.stdout.buffer, isa=t._core.isa(), **found)"
    )
    here = Path(__file__).parent
    ran = subprocess.run(
        [sys.executable, "-c", script, dtype, str(here), str(here.parents[1])],
        env={**os.environ, "LABELWOOD_ISA": isa}, capture_output=True, check=True,
    )  # fmt: skip
    (tmp_path / "found.npz").write_bytes(ran.stdout)
    with np.load(tmp_path / "found.npz") as found:
        if str(found["isa"]) != isa:
            pytest.skip(f"this machine has no {isa}")
        for name, own in weights_and_scores(dtype).items():
            np.testing.assert_allclose(found[name], own, atol=2e-3)


def weights_and_scores(dtype):
    hybrid, y, *_ = planted(5, 60, 4, 37, 30, dtype if dtype == "bfloat16" else np.dtype(dtype).type)
    tree, found = tree_shape.flat_tree(30), {}
    for logistic in (False, True):
        arrays = trained(hybrid, y, tree, solve.Options(logistic, 1.0, 0.01, 0.1, 6, 0.3, -1.0))
        model = searcher(tree, arrays, 4, 37, 0 if logistic else 3, arrays["vector_weights"].astype(np.float16))
        found[f"weights{logistic}"] = arrays["vector_weights"]
        found[f"scores{logistic}"] = model.search(hybrid, 30, 1, True, 1, None)[1]
    return found
