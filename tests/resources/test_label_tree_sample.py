"""The sample behind the exact estimate of a pruned tree: how it is drawn, and what is made of it."""

import numpy as np
import pytest

from labelwood import LinearTree
from labelwood.methods.label_tree.training_rows import TrainingRows
from labelwood.resources import label_tree, label_tree_sample
from labelwood.run_context import RunContext


@pytest.fixture(scope="module")
def planned(planted_of):
    """A tree of three levels, its plan and what its nodes reach."""
    data = planted_of(n_rows=3000, n_labels=150)
    model = LinearTree(n_jobs=1, arity=3, max_leaf=30)
    X, names, Y, run = model._read_training(data.X, data.Y, None)
    fresh = model._untrained(names, X.n_cols, None)
    rows = TrainingRows.of(X, run, normalize=True)
    plan = label_tree.count(rows, Y, next(iter(fresh._shapes(Y.n_cols).values())), run)
    return rows, Y, plan, model


def test_chances_are_those_of_the_draw(planned):
    """Inverse chances add up to the number of siblings, on average over many draws."""
    _, _, plan, _ = planned
    reach = plan.rows.astype(np.float64)
    n_children = np.count_nonzero(plan.rows[1:])
    sums = []
    for seed in range(400):
        drawn = label_tree_sample.draw(plan, reach, 0.2, np.random.default_rng(seed))
        assert all(len(np.unique(part)) == len(part) for part in drawn.picks)
        assert sum(map(len, drawn.picks)) == len(drawn.chance)
        sums.append((1 / drawn.chance).sum())
    assert np.mean(sums) == pytest.approx(n_children, rel=0.1)


def test_every_level_is_in_the_draw(planned):
    _, _, plan, _ = planned
    levels = np.searchsorted(plan.tree.level_ptr, plan.tree.inner, side="right")
    for seed in range(20):
        drawn = label_tree_sample.draw(plan, plan.rows.astype(np.float64), 0.01, np.random.default_rng(seed))
        assert set(levels[drawn.inner]) == set(levels)


def test_siblings_of_chance_one_are_always_drawn():
    sizes = np.array([100.0, 1, 1, 1, 1, 100])
    for seed in range(20):
        picked, chance = label_tree_sample._draw_siblings(sizes, 3, np.random.default_rng(seed))
        assert {0, 5} <= set(picked.tolist())
        assert len(picked) == 3
        assert sorted(chance) == pytest.approx([0.25, 1, 1])
    picked, chance = label_tree_sample._draw_siblings(sizes, 10, np.random.default_rng(0))
    assert picked.tolist() == list(range(6))
    assert (chance == 1).all()


def test_the_curve_finds_what_made_the_numbers():
    random = np.random.default_rng(0)
    about = np.stack([np.ones(4000), *random.normal(3, 1, (2, 4000)), *random.random((2, 4000))], axis=1)
    truth = np.array([1.0, 0.7, 0.2, -0.5, 0.3])
    kept = random.poisson(np.exp(about @ truth)).astype(np.float64)
    np.testing.assert_allclose(label_tree_sample.fit_curve(about, kept, np.ones(4000)), truth, atol=0.03)


def test_the_whole_tree_sampled_is_the_truth(planned, monkeypatch):
    """With every sibling trained, nothing is left to guess."""
    rows, Y, plan, model = planned
    monkeypatch.setattr(label_tree_sample, "_MOST_BLOCKS", 10**6)
    monkeypatch.setattr(label_tree_sample, "_MOST_PASSES", 10**6)
    found = label_tree_sample.sample(
        rows, Y, plan, model._solver(), (0.0, 0.1), 0.1, 10.0, RunContext(n_threads=1, seed=0)
    )
    np.testing.assert_allclose(found.drawn.chance, 1)
    weights = found.kept(0.1).weights
    trained = model._train(rows, Y, [plan.tree], RunContext(n_threads=1, seed=0))[0]
    assert weights.low <= weights.value == pytest.approx(trained.node_weights.n_weights, rel=0.015)


def test_the_band_holds_the_truth_for_most_seeds(planned):
    rows, Y, plan, model = planned
    truth = model._train(rows, Y, [plan.tree], RunContext(n_threads=1, seed=0))[0].node_weights.n_weights
    held = 0
    for seed in range(10):
        run = RunContext(n_threads=1, seed=seed)
        found = (
            label_tree_sample.sample(rows, Y, plan, model._solver(), (0.1,), 0.1, 0.1, run).kept(0.1).weights
        )
        held += found.low <= truth <= found.high
        assert found.value == pytest.approx(truth, rel=0.1)
    assert held >= 8
