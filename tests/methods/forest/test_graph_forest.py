"""GraphForest: what its cuts find, what its fallbacks do, and the graph as a function of its own."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from reference import graph_forest as twin

from labelwood import GraphForest, LabelwoodError, label_neighbors
from labelwood.methods.forest.label_neighbors import label_graph
from labelwood.sparse import from_scipy


@pytest.fixture
def communities():
    """Two halves that share neither labels nor telling features; noise features are everywhere."""
    random = np.random.default_rng(0)
    n = 200
    half = np.arange(n) % 2
    X = np.zeros((n, 60), np.float32)
    Y = np.zeros((n, 20), np.float32)
    for i in range(n):
        X[i, 20 * half[i] + random.choice(20, 6, replace=False)] = 1
        X[i, 40 + random.choice(20, 4, replace=False)] = 1
        Y[i, 10 * half[i] + random.choice(10, 2, replace=False)] = 1
    return X, Y, half


@pytest.mark.parametrize("graph", ["tail", "idf"])
def test_the_first_cut_recovers_planted_communities(communities, graph):
    X, Y, half = communities
    model = GraphForest(n_trees=5, graph=graph, idf=False, n_jobs=1).fit(X, sp.csr_array(Y))
    forest = model.forest_
    rows = forest.prepare(from_scipy(sp.csr_array(X))).to_scipy().toarray()
    for tree in range(5):
        columns, weights = forest.vector(forest.child_ptr[tree])
        side = rows[:, columns] @ weights.astype(np.float32) >= 0
        agree = (side == half.astype(bool)).mean()
        assert max(agree, 1 - agree) > 0.98


def hyperplane(X, Y, *, epochs, seed):
    """The root's weights after so many epochs, and the graph they cut."""
    model = GraphForest(
        n_trees=1, graph="tail", epochs=epochs, l1=0.1, idf=False, normalize=False, weight_dtype="float32",
        n_jobs=1, random_state=seed,
    ).fit(X, sp.csr_array(Y))  # fmt: skip
    columns, weights = model.forest_.vector(1)
    w = np.zeros(X.shape[1])
    w[columns] = weights
    return w


def test_the_objective_rises_over_epochs(planted):
    X = (planted.X.toarray() / np.linalg.norm(planted.X.toarray(), axis=1, keepdims=True)).astype(np.float32)
    Y = planted.Y.toarray()
    graph, _ = twin.label_graph(Y.astype(int), 10, 50, "tail")
    random = np.random.default_rng(0)
    negatives = random.integers(0, len(X), (len(X), 10)).tolist()
    values = [
        np.mean(
            [twin.objective(X, graph, hyperplane(X, Y, epochs=epochs, seed=seed), negatives, 0.1) for seed in range(4)]
        )
        for epochs in (0, 1, 3, 10)
    ]
    assert values == sorted(values)
    assert values[-1] > values[0] + 0.05 * abs(values[0])


def test_neighbours_stay_together_on_every_level(planted):
    forest = GraphForest(n_trees=1, graph="tail", n_jobs=1).fit(planted.X, planted.Y).forest_
    X, Y = forest.prepare(from_scipy(planted.X)).to_scipy(), from_scipy(planted.Y)
    random = np.random.default_rng(1)

    def graph_of(rows):
        return label_graph(Y.take(rows), 10, label_threshold=50, graph="tail")[:2]

    def at_random(rows, _):
        margin = rows @ random.standard_normal(rows.shape[1])
        return margin >= np.median(margin)

    pairs, learned = twin.kept_pairs(forest, 0, X, graph_of, lambda _, split: split).T
    _, chance = twin.kept_pairs(forest, 0, X, graph_of, at_random).T
    many = pairs > 100
    gain = (learned - chance)[many] / pairs[many]
    assert many.sum() >= 3
    assert (gain > 0.05).all()
    assert (gain[:3] > 0.12).all()


def test_threads_do_not_change_the_forest(planted):
    one, two = (GraphForest(n_trees=7, n_jobs=jobs).fit(planted.X, planted.Y).forest_ for jobs in (1, 2))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])


def test_rows_of_one_label_set_are_one_leaf(planted):
    same = sp.csr_array(np.tile([1.0, 0.0, 1.0], (planted.X.shape[0], 1)))
    model = GraphForest(n_trees=2, n_jobs=1).fit(planted.X, same)
    assert model.describe()["nodes"] == 2


def test_rows_of_one_kind_are_one_leaf():
    random = np.random.default_rng(0)
    Y = sp.csr_array((random.random((50, 8)) < 0.3).astype(np.float32))
    model = GraphForest(n_trees=2, n_jobs=1, idf=False).fit(np.ones((50, 4), np.float32), Y)
    assert model.describe()["nodes"] == 2


def test_a_penalty_that_leaves_no_weight_still_splits(planted):
    model = GraphForest(n_trees=3, l1=1e6, start="zero", n_jobs=1).fit(planted.X, planted.Y)
    assert model.describe()["leaves"] > 3 * 240 / 20
    assert np.diff(model.forest_.leaf_ptr).max() < 24


def test_frequent_labels_alone_still_make_a_graph():
    Y = np.zeros((300, 2), np.float32)
    Y[:150, 0] = Y[150:, 1] = 1
    found = label_neighbors(Y, 3, label_threshold=50).rows
    assert (found >= 0).all()
    assert (found[:150] < 150).all()


def test_preset():
    model = GraphForest.preset("paper", n_trees=3)
    assert (model.n_trees, model.epochs, model.l1, model.idf) == (3, 10, 4.0, False)
    with pytest.raises(LabelwoodError, match="GraphForest: preset must be one of paper; got 'other'"):
        GraphForest.preset("other")


def test_neighbors_of_names_and_matrices():
    names = [["a", "b"], ["b", "a"], ["a"], ["c"], []]
    rows, alike = label_neighbors(names, 2)
    assert rows.tolist() == [[1, 2], [2, 0], [0, 1], [-1, -1], [-1, -1]]
    np.testing.assert_allclose(alike[:3], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    matrix = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(label_neighbors(sp.csr_array(matrix), 2).rows, rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be an integer, at least 1; got 0"),
        ({"k": True}, "k must be an integer, at least 1; got True"),
        ({"label_threshold": 1}, "label_threshold must be an integer, at least 2; got 1"),
        ({"graph": "head"}, "graph must be one of 'tail', 'idf'; got 'head'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(LabelwoodError, match=f"label_neighbors: {message}"):
        label_neighbors([["a"], ["a"]], **arguments)


INTERRUPTED = """
import os, signal, threading, time
from labelwood import GraphForest
from labelwood.data.synth import Shape, synth

data = synth(Shape(n_rows=20_000, n_features=20_000, n_labels=1000, words_per_row=30))
model = GraphForest(n_jobs=1, epochs=1_000_000)  # the cut of the first root would take days
sent = []

def interrupt():
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1.0, interrupt).start()
try:
    model.fit(data.X, data.Y.to_scipy())
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
"""


def test_an_interrupt_stops_training_within_a_node():
    """In seconds of CPU, so that other processes on the machine do not count."""
    command = [sys.executable, "-c", INTERRUPTED]
    found = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    assert float(found.stdout) < 0.5
