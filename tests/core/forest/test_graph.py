"""The graph, the cut and the forest against their twin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from forest_leaves import leaves_of, twin_leaves
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import graph_forest as twin

from labelwood import GraphForest, _core
from labelwood.methods.forest.graph_forest import BETA
from labelwood.methods.forest.label_neighbors import label_graph
from labelwood.sparse import from_scipy

HERE = Path(__file__).parent


def random_rows(random, n, n_features, density):
    X = np.where(random.random((n, n_features)) < density, random.random((n, n_features)), 0)
    X[np.arange(n), random.integers(0, n_features, n)] = 1.0
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


CUT_OPTIONS = (
    "n_negatives", "match_negatives", "epochs", "l1", "learning_rate", "beta", "tolerance", "start", "feature_rows",
)  # fmt: skip


def random_labels(random, n, n_labels, mean=2.0):
    """Some labels frequent, most rare; some rows without any."""
    popularity = 1 / np.arange(1, n_labels + 1)
    return (random.random((n, n_labels)) < mean * popularity / popularity.sum()).astype(np.int64)


def kernel_cut(X, graph, options, seed):
    matrix = from_scipy(sp.csr_array(X))
    ptr = np.cumsum([0] + [len(near) for near in graph]).astype(np.int64)
    flat = np.array([j for near in graph for j in near], np.int32)
    own = {name: value for name, value in vars(options).items() if name in CUT_OPTIONS}
    columns, weights, side = _core.graph_cut(matrix, ptr, flat, own, seed)
    w = np.zeros(X.shape[1])
    w[columns] = weights
    return w, side.astype(bool)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    k=st.integers(1, 12),
    threshold=st.integers(2, 30),
    kind=st.sampled_from(["tail", "idf"]),
    fill=st.booleans(),
)
def test_the_graph_is_the_twins(seed, n, k, threshold, kind, fill):
    Y = random_labels(np.random.default_rng(seed), n, 12)
    ptr, neighbors, alike = label_graph(
        from_scipy(sp.csr_array(Y)), k, label_threshold=threshold, graph=kind, fill=fill
    )
    wanted, likeness = twin.label_graph(Y, k, threshold, kind, fill)
    if kind == "tail":  # by idf, two libraries' logarithms may break ties differently
        assert [near.tolist() for near in np.split(neighbors, ptr[1:-1])] == wanted
    np.testing.assert_array_equal(np.diff(ptr), [len(near) for near in wanted])
    np.testing.assert_allclose(alike, np.concatenate([*likeness, []]), rtol=1e-5)


@pytest.mark.parametrize("start", ["rows", "zero", "gaussian"])
# Rows with their zeros; sparse rows and a list of the touched features; sparse rows and all features in turn.
@pytest.mark.parametrize(("n_features", "n_negatives"), [(30, 5), (3000, 5), (300, 20)])
@pytest.mark.parametrize("l1", [0.0, 0.5])
@pytest.mark.parametrize("feature_rows", [1, 2])
@pytest.mark.parametrize("match", [False, True])
def test_the_cut_is_the_twins(start, n_features, n_negatives, l1, feature_rows, match):
    random = np.random.default_rng(3)
    X = random_rows(random, 60, n_features, 9 / n_features)
    Y = random_labels(random, 60, 15)
    options = twin.Options(
        n_neighbors=4,
        n_negatives=n_negatives,
        epochs=3,
        l1=l1,
        start=start,
        feature_rows=feature_rows,
        match_negatives=match,
    )
    graph, _ = twin.label_graph(Y, 4, 50, "tail")
    wanted = twin.cut(X.astype(np.float64), graph, options, twin.Rng(11))
    w, side = kernel_cut(X, graph, options, 11)
    assert np.abs(wanted).max() > 0.01
    np.testing.assert_allclose(w, wanted, rtol=2e-3, atol=2e-5)
    np.testing.assert_array_equal(side, twin.sides(X.astype(np.float64), wanted))


def test_every_instruction_set_makes_the_same_cut():
    """The table is chosen once a process, so each has its own."""
    script = (
        "import json, sys, numpy as np; sys.path[:0] = sys.argv[1:];"
        "from test_graph import *; r = np.random.default_rng(5);"
        "X = random_rows(r, 50, 200, 0.1); graph, _ = twin.label_graph(random_labels(r, 50, 9), 4, 50, 'tail');"
        "print(json.dumps(kernel_cut(X, graph, twin.Options(l1=0.1), 2)[0].tolist()))"
    )
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", script, str(HERE), str(HERE.parents[1]), str(HERE.parents[1] / "support")],
                env={**os.environ, "LABELWOOD_ISA": isa},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for isa in ("baseline", "avx2", "avx512")
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("start", ["rows", "zero", "gaussian"])
@pytest.mark.parametrize("l1", [0.0, 0.3, 50.0])  # the last leaves no weight: the fallback splits
@pytest.mark.parametrize("feature_rows", [1, 4])
@pytest.mark.parametrize("even", [False, True])
def test_the_forest_is_the_twins(start, l1, feature_rows, even):
    random = np.random.default_rng(8)
    X, Y = random_rows(random, 150, 40, 0.2), random_labels(random, 150, 20)
    labelled = Y.any(axis=1)  # the estimator leaves the others out
    X, Y = X[labelled], Y[labelled]
    shared = {"n_neighbors": 5, "n_negatives": 5, "label_threshold": 12, "graph": "tail", "epochs": 2}
    shared |= {"l1": l1, "start": start, "max_leaf": 6, "feature_rows": feature_rows}
    shared |= {"match_negatives": even, "fill_neighbors": even}
    options = twin.Options(**shared)
    plain = {"idf": False, "normalize": False, "weight_dtype": "float32"}
    model = GraphForest(n_trees=3, n_jobs=1, random_state=4, **shared, **plain).fit(X, sp.csr_array(Y))
    assert options.beta == BETA
    for tree in range(3):
        wanted = twin.grow(X.astype(np.float64), Y, options, seed=4, tree=tree)
        leaves, expected = leaves_of(model.forest_, tree), twin_leaves(wanted)
        # Single against double precision: a row that lies on a hyperplane may fall on either side of it.
        assert sum(leaf in expected for leaf in leaves) > 0.8 * max(len(leaves), len(expected))
        first = int(model.forest_.child_ptr[tree])
        columns, weights = model.forest_.vector(first)
        np.testing.assert_allclose(weights, wanted.w[columns], rtol=2e-3, atol=2e-5)
        assert model.forest_.bias[first] == pytest.approx(wanted.bias, abs=1e-6)
