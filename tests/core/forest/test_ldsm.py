"""The LdSM kernel against its twin, and the paper's lemmas and theorems on constructed and grown nodes."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reference import ldsm_forest as twin

from labelwood import _core
from labelwood.methods.forest.ldsm_forest import LdsmForest
from labelwood.packed.routed_forest import Routing, narrow
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, from_lists

SETTINGS = st.fixed_dictionaries(
    {
        "arity": st.sampled_from([2, 3, 4]),
        "max_nodes": st.sampled_from([1, 7, 40]),
        "epochs": st.integers(1, 4),
        "lambda_integrity": st.sampled_from([1.0, 2.0]),
        "lambda_multiway": st.sampled_from([0.5, 1.0]),
        "optimizer": st.sampled_from(["nag", "adagrad", "sgd"]),
        "learning_rate": st.sampled_from([0.1, 0.7]),
        "weight_threshold": st.sampled_from([0.0, 0.05]),
        "loss": st.sampled_from(["logistic", "squared", "clamped"]),
        "start_weights": st.sampled_from([0.0, 0.3]),
        "first_of_ties": st.booleans(),
        "partial_splits": st.booleans(),
        "shuffle_epoch": st.booleans(),
        "divide_by_rows": st.booleans(),
    }
).filter(lambda o: not (o["loss"] == "squared" and o["optimizer"] == "sgd" and o["learning_rate"] > 0.1))  # diverges


def random_data(seed, n_rows=40, n_features=12, n_labels=8):
    """Rows of a few features of any sign and scale, with labels that depend on them; some have none."""
    random = np.random.default_rng(seed)
    X, labels = [], []
    for _ in range(n_rows):
        columns = np.sort(random.choice(n_features, random.integers(0, 6), replace=False))
        values = random.choice([1.0, -0.5, 3.0], len(columns)) * random.uniform(0.5, 2, len(columns))
        X.append((columns, values.astype(np.float32)))
        near = {int(c) % n_labels for c in columns if random.random() < 0.8}
        labels.append(sorted(near | ({int(random.integers(n_labels))} if random.random() < 0.3 else set())))
    indptr = np.concatenate([[0], np.cumsum([len(c) for c, _ in X])]).astype(np.int64)
    matrix = CSR(
        indptr, np.concatenate([c for c, _ in X]).astype(np.int32), np.concatenate([v for _, v in X]), n_features
    )
    return X, labels, matrix.check(), from_lists(labels, n_labels)


def grow(X, Y, n_trees, seed, *, n_threads=1, leaf_size=0, **o):
    own = {"first_tree": 0, "n_trees": n_trees, "leaf_size": leaf_size, "seed": seed}
    return _core.grow_ldsm_forest(X, Y, {**o, **own}, n_threads, None)


def packed(arrays, X, Y, *, leaf_votes=False):
    return narrow(
        {name: array for name, array in arrays.items() if name != "splits"},
        routing=Routing(threshold=0.5, leaf_votes=leaf_votes),
        n_features=X.n_cols,
        n_labels=Y.n_cols,
        weight_dtype="float32",
        leaf_dtype="float32",
    ).check()


@given(seed=st.integers(0, 2**31), options=SETTINGS, leaf_votes=st.booleans())
@settings(max_examples=40, phases=[Phase.explicit, Phase.generate])
def test_kernel_is_twin(seed, options, leaf_votes):
    rows, labels, X, Y = random_data(seed)
    arrays = grow(X, Y, 2, seed, **options)
    splits = arrays["splits"]
    forest = packed(arrays, X, Y, leaf_votes=leaf_votes)
    o = twin.Options(X.n_cols, Y.n_cols, **options, leaf_votes=leaf_votes)
    roots = [twin.build_tree(rows, labels, o, twin.Rng(seed, tree)) for tree in range(2)]
    inner = 0
    level = list(roots)
    for node in range(forest.n_nodes):  # both are breadth-first over the forest
        v = level[node]
        children = range(forest.child_ptr[node], forest.child_ptr[node + 1])
        assert len(children) == len(v.children)
        level += v.children
        if not v.children:
            found, values = forest.leaf(node)
            wanted = twin.leaf_values(v, labels, o)
            assert found.tolist() == np.flatnonzero(wanted).tolist()
            np.testing.assert_allclose(values, wanted[found], rtol=1e-6)
            continue
        for m, child in enumerate(children):
            columns, weights = forest.vector(child)
            dense = np.zeros(X.n_cols, np.float32)
            dense[columns] = weights
            assert dense.tobytes() == (v.weights[:-1, m] + np.float32(0)).tobytes()
            assert forest.bias[child] == v.weights[-1, m]
        np.testing.assert_allclose(splits[inner], [*v.split, v.running], rtol=1e-5, atol=1e-6)
        inner += 1
    assert inner == len(splits)
    top = forest.topk(X, Y.n_cols, RunContext())
    for i, row in enumerate(rows):
        scores = twin.predict(roots, row, labels, o)
        kept = top.labels[i] >= 0
        np.testing.assert_allclose(top.scores[i][kept], scores[top.labels[i][kept]], rtol=1e-5)


@given(seed=st.integers(0, 2**31), arity=st.integers(2, 4))
@settings(max_examples=30)
def test_the_tabulated_argmin_minimises_equation_1(seed, arity):
    """Algorithm 3 as printed, over all labels, from probabilities rather than sums."""
    random = np.random.default_rng(seed)
    n_labels = 6
    l_v = random.integers(1, 9, n_labels).astype(float)
    P_given = random.random((n_labels, arity))
    C = l_v.sum()
    P = (l_v / C) @ P_given
    y = np.sort(random.choice(n_labels, 3, replace=False))
    o = twin.Options(1, n_labels, arity=arity, lambda_integrity=1.5, lambda_multiway=1.0)
    T = list(C * P)
    S = [list(l_v[k] * P_given[k]) for k in y]
    chosen = twin.optimize_objective(T, S, C + len(y), o, twin.Rng(seed, 0))

    def J(sent):
        l_new = l_v.copy()
        l_new[y] += 1
        P_new = P_given.copy()
        P_new[y] = ((l_new[y, None] - 1) * P_given[y] + np.array(sent)) / l_new[y, None]
        P_all = (C * P + len(y) * np.array(sent)) / (C + len(y))
        return twin.objective(P_all, P_new, l_new / (C + len(y)), 1.5, 1.0)

    every = [[(s >> m) & 1 for m in range(arity)] for s in range(1, 2**arity)]
    assert J(chosen) <= min(map(J, every)) + 1e-9


@pytest.mark.parametrize("arity", [2, 3])
def test_threads_do_not_change_the_forest(arity):
    _, _, X, Y = random_data(3, n_rows=120)
    options = {**_DEFAULTS, "arity": arity}
    one, two = (grow(X, Y, 6, 5, n_threads=n, **options) for n in (1, 2))
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_leaf_size_keeps_the_most_frequent_labels():
    _, _, X, Y = random_data(4, n_rows=80)
    whole, cut = (packed(grow(X, Y, 3, 1, leaf_size=n, **_DEFAULTS), X, Y) for n in (0, 2))
    for node in whole.leaves:
        labels, values = whole.leaf(node)
        best = np.sort(np.lexsort((labels, -values))[:2])
        assert cut.leaf(node)[0].tolist() == labels[best].tolist()
        assert cut.leaf(node)[1].tolist() == values[best].tolist()


_DEFAULTS = {
    "arity": 2, "max_nodes": 100, "epochs": 3, "lambda_integrity": 2.0, "lambda_multiway": 1.0,
    "optimizer": "nag", "learning_rate": 0.1, "weight_threshold": 0.0, "loss": "logistic", "shuffle_epoch": True,
    "divide_by_rows": True, "start_weights": 0.0, "first_of_ties": False, "partial_splits": False,
}  # fmt: skip


# The paper's theory. Its setting: a row goes at least one way, so sum_j P_j^i >= 1.


@st.composite
def a_split(draw):
    """``P``, ``P_given`` and ``pi`` of some split."""
    arity, n_labels = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**31)))
    P_given = random.random((n_labels, arity))
    if draw(st.booleans()):
        P_given = P_given.round()
    lacking = np.maximum(1 - P_given.sum(axis=1), 0)
    P_given[np.arange(n_labels), random.integers(arity, size=n_labels)] += lacking
    P_given = np.minimum(P_given, 1)
    P_given[P_given.sum(axis=1) < 1, :] = 1  # only where capping took mass away again
    pi = random.dirichlet(np.ones(n_labels))
    return pi @ P_given, P_given, pi


LAMBDAS = st.tuples(st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0]), st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0]))


@given(split=a_split(), lambdas=LAMBDAS)
def test_lemma_1_range(split, lambdas):
    (P, P_given, pi), (lambda_1, lambda_2) = split, lambdas
    M = len(P)
    J = twin.objective(P, P_given, pi, lambda_1, lambda_2)
    if lambda_2 / lambda_1 > M - 3:
        assert -lambda_1 * (M - 1) - 1e-9 <= J
    if lambda_1 >= 1:  # the proof's upper bound takes the balancing term below lambda_1 times integrity
        assert lambda_2 * (M - 1) + 1e-9 >= J


@given(n=st.integers(2, 4), copies=st.integers(1, 3), lambdas=LAMBDAS)
def test_lemma_1_minimum_is_the_balanced_and_pure_split(n, copies, lambdas):
    lambda_1, lambda_2 = lambdas
    P_given = np.eye(n).repeat(copies, axis=0)
    pi = np.full(n * copies, 1 / (n * copies))
    P = pi @ P_given
    assert twin.objective(P, P_given, pi, lambda_1, lambda_2) == pytest.approx(-lambda_1 * (n - 1))
    assert twin.balancedness(P) == pytest.approx(0) == twin.purity(P_given, pi)


@given(split=a_split(), lambdas=LAMBDAS)
def test_lemma_2(split, lambdas):
    P, P_given, pi = split
    J, pure = (f(P, P_given, pi, *lambdas) for f in (twin.objective, twin.purity_term))
    assert twin.balancedness(P) <= J - pure + 1e-9


def test_lemma_3_as_printed_has_a_counterexample():
    """Its proof takes sum_{j<l} |P_j - P_l| <= (M-1)/2 sum_j P_j, which fails for P = (1, 0)."""
    P_given, pi = np.array([[0.75, 0.25], [0.0, 1.0]]), np.array([0.7, 0.3])
    P, lambda_1, lambda_2 = pi @ P_given, 0.5, 0.3
    balance = twin.balancing_term(P)
    assert lambda_1 + balance >= lambda_2 >= lambda_1 / 2
    J = twin.objective(P, P_given, pi, lambda_1, lambda_2)
    assert twin.purity(P_given, pi) > (J - balance + lambda_2) * 2 / (2 * (2 * lambda_2 - lambda_1))


@given(split=a_split(), lambda_1=st.sampled_from([0.5, 1.0, 2.0]), beyond=st.floats(0.01, 3))
def test_lemma_3_corrected(split, lambda_1, beyond):
    """With the bound that does hold, sum_{j<l} |P_j - P_l| <= (M-1) sum_j P_j, for lambda_2 > lambda_1 (M-1)."""
    P, P_given, pi = split
    M, balance = len(P), twin.balancing_term(P)
    lambda_2 = lambda_1 * (M - 1) + beyond
    J = twin.objective(P, P_given, pi, lambda_1, lambda_2)
    bound = (J - balance + lambda_2) / (M * (lambda_2 - lambda_1 * (M - 1)))
    assert twin.purity(P_given, pi) <= bound + 1e-6


@pytest.mark.parametrize(("arity", "depth"), [(2, 1), (2, 3), (3, 2), (4, 2)])
def test_theorem_1_perfect_splits_make_no_error(arity, depth):
    """J = J* at every node down to leaves of R = 2 labels of their own: every top-r list is right."""
    leaves = np.repeat(np.arange(arity**depth), 4)
    labels = [[2 * int(leaf), 2 * int(leaf) + 1] for leaf in leaves]
    n_labels = 2 * arity**depth
    nodes = [list(range(len(labels)))]
    for level in range(depth):
        width = arity ** (depth - level - 1)
        for rows in nodes:
            parts = [[i for i in rows if leaves[i] // width % arity == m] for m in range(arity)]
            hists = [twin.histogram(labels, part, n_labels) for part in parts]
            J = twin.objective(*twin.probabilities(twin.histogram(labels, rows, n_labels), hists), 1.0, 1.0)
            assert pytest.approx(-(arity - 1)) == J
        nodes = [[i for i in rows if leaves[i] // width % arity == m] for rows in nodes for m in range(arity)]
    for r in (1, 2):
        assert sum(_hits(labels, rows, n_labels, r) for rows in nodes) == r * len(labels)


def _hits(labels, rows, n_labels, r):
    """Relevant labels among the r most frequent of a leaf, over its rows."""
    return np.sort(twin.histogram(labels, rows, n_labels))[::-1][:r].sum()


@given(seed=st.integers(0, 2**31), arity=st.integers(2, 4), r=st.integers(1, 3))
def test_theorem_2_single_path_splits_never_lower_recall(seed, arity, r):
    """With every row in one child, the r best labels of the children find at least what the parent's found."""
    random = np.random.default_rng(seed)
    labels = [sorted(random.choice(8, 3, replace=False).tolist()) for _ in range(30)]
    sent = random.integers(arity, size=30)
    parts = [[i for i in range(30) if sent[i] == m] for m in range(arity)]
    assert sum(_hits(labels, part, 8, r) for part in parts) >= _hits(labels, list(range(30)), 8, r)


def test_recorded_statistics_obey_the_lemmas():
    """On grown trees: Lemma 1's lower bound and Definitions 1 and 2's ranges."""
    _, _, X, Y = random_data(9, n_rows=200, n_labels=10)
    forest = LdsmForest(n_trees=5, n_jobs=1).fit(X.to_scipy(), Y.to_scipy())
    J, beta, alpha, _ = forest.splits_.T
    assert len(J) > 20
    assert (J >= -2 - 1e-6).all()
    assert (J <= 1 + 1e-6).all()
    assert ((beta >= 0) & (beta <= 0.5)).all()
    assert ((alpha >= 0) & (alpha <= 1)).all()
