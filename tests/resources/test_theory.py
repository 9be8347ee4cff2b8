"""The theory of model sizes: its theorems over all parameters, and the figures the paper gives."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from labelwood.errors import LabelwoodError
from labelwood.packed import tree_shape
from labelwood.resources import theory

ARITIES = st.integers(2, 200)
LABELS = st.integers(8, 10**9)
ALPHAS = st.floats(0.001, 0.999)


def test_the_example_of_the_paper():
    """L = 2e8 and K = 100: D is 5 and alpha may be almost 1, but at full depth 0.819."""
    n_labels = 2 * 10**8
    assert theory.largest_depth(n_labels, 100) == 5
    bounds = [theory.smaller_below(n_labels, 100, depth) for depth in (2, 3, 4, 5)]
    assert bounds[0] == 1 - 0.5 / 100**3
    assert bounds[1] == pytest.approx(0.99995, abs=1e-5)
    assert bounds[2] == pytest.approx(0.9967, abs=1e-4)
    assert bounds[3] == pytest.approx(0.819, abs=1e-3)
    assert list(theory.falling_depths(n_labels, 100, 0.6)) == [2, 3]
    # Appendix C: for alpha = 0.6 depth 5 is slightly larger than depth 4.
    assert theory.size_ratio(n_labels, 100, 5, 0.6) > theory.size_ratio(n_labels, 100, 4, 0.6)


@given(LABELS, ARITIES)
def test_the_largest_depth_is_the_last_with_two_labels_a_node(n_labels, arity):
    depth = theory.largest_depth(n_labels, arity)
    assert n_labels >= 2 * arity ** (depth - 1)
    assert n_labels < 2 * arity**depth


@given(LABELS, ARITIES, st.integers(2, 12), ALPHAS)
def test_theorem_1(n_labels, arity, depth, alpha):
    bound = theory.smaller_below(n_labels, arity, depth)
    assume(bound is not None)
    assert theory.size_ratio(n_labels, arity, depth, min(alpha, np.nextafter(bound, 0))) < 1 + 1e-12
    if alpha < bound:
        assert theory.size_ratio(n_labels, arity, depth, alpha) < 1


@given(st.integers(4, 200), st.integers(3, 10), st.integers(0, 6))
def test_alpha_star_solves_its_equation(arity, depth, above):
    alpha = theory.alpha_star(arity, depth, depth + above)
    assert 0 < alpha < 1
    assert alpha ** (depth - 2) * (float(arity) ** -above + alpha) == pytest.approx(1)


@given(LABELS, ARITIES, ALPHAS)
def test_theorem_2(n_labels, arity, alpha):
    for depth in theory.falling_depths(n_labels, arity, alpha):
        shallow, deep = (theory.size_ratio(n_labels, arity, d, alpha) for d in (depth, depth + 1))
        assert deep < shallow * (1 + 1e-12)


@given(st.integers(2, 50), st.integers(2, 8), st.integers(2, 10**6), st.integers(1, 1000))
def test_without_reduction_all_features_stay(arity, depth, n_labels, n_features):
    """Eq. (14) with alpha = 1 is Eq. (11), and with alpha = 1 / K Eq. (35)."""
    every = theory.dense_tree_weights(n_labels, n_features, arity, depth)
    assert theory.tree_weights(n_labels, n_features, arity, depth, 1.0) == pytest.approx(every)
    exception = (depth - 1) * arity * n_features + n_labels * n_features / arity ** (depth - 1)
    assert theory.tree_weights(n_labels, n_features, arity, depth, 1 / arity) == pytest.approx(exception)


@given(st.integers(4, 60), st.floats(0.05, 0.95))
def test_a_tree_that_keeps_the_assumptions_has_the_size_of_equation_14(arity, alpha):
    """A balanced tree of depth 3 whose nodes use exactly a share alpha of their parent's features."""
    tree = tree_shape.random_tree(arity**3, arity=arity, max_leaf=arity, seed=0)
    n_features = 10**6
    used = [round(n_features * alpha**depth) for depth in (0, *[1] * arity, *[2] * arity**2)]
    expected = theory.tree_weights(arity**3, n_features, arity, 3, alpha)
    assert theory.weights_of(tree, used) == pytest.approx(expected, rel=1e-3)
    found = theory.levels(tree, used)
    assert [level.nodes for level in found] == [1, arity, arity**2]
    assert [level.alpha for level in found] == pytest.approx([1.0, alpha, alpha], rel=1e-3)
    assert sum(level.weights for level in found) == theory.weights_of(tree, used)


def test_figure_8_of_the_paper():
    """Nodes of 10, 30 and 80 features below one of 100, with 2, 2 and 6 children: the weighted mean is 0.56."""
    parent = [-1, 0, 0, 0, 1, 1, 2, 2, *[3] * 6]
    tree = tree_shape.freeze(parent, [-1, -1, -1, -1, *range(10)])
    used = [100, 10, 30, 80]
    assert theory.reduction_ratios(tree, used).tolist() == [1.0, 0.1, 0.3, 0.8]
    assert theory.levels(tree, used)[1].alpha == pytest.approx(0.56)
    weights = theory.weights_of(tree, used)
    assert weights == 3 * 100 + 2 * 10 + 2 * 30 + 6 * 80
    assert theory.paper_ratio(weights, 10, 100) == pytest.approx(1.5 * weights / 1000)


def test_nonsense_is_refused():
    with pytest.raises(LabelwoodError, match="at least 2"):
        theory.largest_depth(1, 2)
    with pytest.raises(LabelwoodError, match="alpha"):
        theory.tree_weights(10, 1, 2, 2, 0.0)
    assert theory.smaller_below(100, 3, 3) is None
    assert len(theory.falling_depths(10**6, 10, 0.99)) == 0


@given(
    n_labels=st.integers(100, 10**7), arity=st.integers(2, 100), depth=st.integers(2, 6), row_labels=st.floats(1, 50)
)
def test_training_time_of_a_balanced_tree(n_labels, arity, depth, row_labels):
    """Eqs. (21) to (23) sum to at most Eq. (5), which is at least Eq. (24) times the values that a row is read."""
    shape = (n_labels, 1000, 50.0, arity, depth, row_labels)
    by_depth = theory.tree_time_by_depth(*shape)
    assert len(by_depth) == depth
    assert sum(by_depth) <= theory.tree_time(*shape) * (1 + 1e-12)
    assert by_depth[0] == theory.one_vs_rest_time(arity, 1000, 50.0)
    assert theory.tree_time(*shape) >= 1000 * 50 * row_labels * theory.fewest_on_path(n_labels, depth) * (1 - 1e-12)


@pytest.mark.parametrize(("arity", "depth"), [(2, 4), (10, 3), (100, 2)])
def test_training_time_at_the_depth_of_all_labels(arity, depth):
    """Eq. (6): with L = K^d the bound is K d log(L) per value of a row, and Eq. (24) holds with equality."""
    n_labels = arity**depth
    assert theory.children_on_path(n_labels, arity, depth) == pytest.approx(theory.fewest_on_path(n_labels, depth))
    wanted = arity * depth * math.log(n_labels) * 1000 * 50
    assert theory.tree_time(n_labels, 1000, 50.0, arity, depth) == pytest.approx(wanted)
    with pytest.raises(LabelwoodError, match="depth and arity must be at least 2"):
        theory.tree_time_by_depth(n_labels, 1000, 50.0, arity, 1)


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_children_use_all_features_together(seed, arity):
    """Theorem 3: rows of a node, each used by at least one child; the mean of the children's shares is 1/K or more."""
    random = np.random.default_rng(seed)
    X = random.random((40, 30)) < 0.1
    used = random.random((40, arity)) < 0.3
    used[np.arange(40), random.integers(0, arity, 40)] = True
    of_children = [X[used[:, child]].any(axis=0).sum() for child in range(arity)]
    whole = max(X.any(axis=0).sum(), 1)
    assert X.any(axis=0).sum() == 0 or np.mean(of_children) / whole >= theory.smallest_alpha(arity) - 1e-12
