"""Maps from scores to probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from labelwood.errors import FormatError
from labelwood.scoring.calibration import KINDS, Calibration, Listed, choose, learn, log_loss


def drawn(truth, n=20_000, seed=0, n_labels=10):
    """Listed labels whose chance of being right is a known function of their score."""
    random = np.random.default_rng(seed)
    scores = random.random(n)
    labels = random.integers(n_labels, size=n).astype(np.int32)
    return Listed(np.arange(n) // 10, labels, scores, random.random(n) < truth(scores, labels))


def test_platt_finds_the_curve_that_scikit_learn_finds():
    listed = drawn(lambda s, _: 1 / (1 + np.exp(-2 * np.log(s / (1 - s)) + 1)))
    odds = np.log(listed.scores / (1 - listed.scores))[:, None]
    theirs = LogisticRegression(C=1e9, tol=1e-10).fit(odds, listed.hits)
    ours = learn(listed, "platt").apply(listed.labels, listed.scores)
    np.testing.assert_allclose(ours, theirs.predict_proba(odds)[:, 1], atol=0.01)


def test_isotonic_stays_close_to_scikit_learn_and_never_falls():
    listed = drawn(lambda s, _: s**2)
    theirs = IsotonicRegression().fit(listed.scores, listed.hits).predict(listed.scores)
    ours = learn(listed, "isotonic").apply(listed.labels, listed.scores)
    assert np.abs(ours - theirs).mean() < 0.01
    grid = np.linspace(0, 1, 1001)
    assert (np.diff(learn(listed, "isotonic").apply(np.zeros(1001, np.int32), grid)) >= 0).all()


@pytest.mark.parametrize(
    ("truth", "kind"),
    [
        (lambda s, _: np.where(s < 0.5, 0.1, 0.8), "isotonic"),  # a jump, which no logistic curve follows
        (lambda s, _: 1 / (1 + np.exp(-np.log(s / (1 - s)) + 1.5)), "platt"),
    ],
)
def test_the_kind_is_chosen_by_the_loss(truth, kind):
    found, losses = choose(drawn(truth, n=3000), None)
    assert found.kind == kind
    assert losses[f"{kind}, global"] == min(losses.values())


def test_depths_get_maps_of_their_own_where_they_differ():
    deep = np.repeat([1, 2], 5).astype(np.int32)
    found, losses = choose(drawn(lambda s, labels: np.where(labels < 5, s, s**3)), deep)
    assert found.n_groups == 3  # the third is that of labels unknown
    assert not found.keeps_order
    assert min(losses, key=losses.get).endswith("by group")
    half = np.full(2, 0.5)
    shallow, deeper = found.apply(np.array([0, 9], np.int32), half)
    assert abs(shallow - 0.5) < 0.05
    assert abs(deeper - 0.125) < 0.05


def test_depths_with_few_labels_listed_share_a_map():
    deep = np.repeat([1, 2], 5).astype(np.int32)
    assert learn(drawn(lambda s, _: s, n=1500), "platt", deep).n_groups == 1
    assert learn(drawn(lambda s, _: s, n=2500), "platt", deep).n_groups == 3


def test_a_chosen_map_is_calibrated_on_other_rows():
    truth = lambda s, _: s**3  # noqa: E731
    found, _ = choose(drawn(truth), None)
    other = drawn(truth, seed=1)
    meant = found.apply(other.labels, other.scores)
    for low in np.arange(0, 1, 0.1):
        inside = (meant >= low) & (meant < low + 0.1)
        assert abs(meant[inside].mean() - other.hits[inside].mean()) < 0.03


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1), st.booleans()), max_size=30))
def test_any_list_gives_a_rising_map(kind, pairs):
    scores = np.array([s for s, _ in pairs], np.float64)
    hits = np.array([h for _, h in pairs], np.bool_)
    found = learn(Listed(np.arange(len(pairs)), np.zeros(len(pairs), np.int32), scores, hits), kind)
    Calibration.restore(kind, found.arrays())
    grid = found.apply(np.zeros(101, np.int32), np.linspace(0, 1, 101))
    assert (np.diff(grid) >= 0).all()
    assert ((grid >= 0) & (grid <= 1)).all()


def test_the_loss_of_certainty():
    assert log_loss(np.array([0.5, 0.5]), np.array([True, False])) == pytest.approx(np.log(2))
    assert log_loss(np.array([1.0]), np.array([False])) > 10


@pytest.mark.parametrize(
    "change",
    [
        {"x": lambda x: x[::-1].copy()},
        {"y": lambda y: y + 1},
        {"ptr": lambda ptr: ptr + 1},
        {"group": lambda _: np.array([5], np.int32)},
        {"x": lambda x: x.astype(np.float32)},
    ],
)
def test_damaged_maps_are_refused(change):
    arrays = learn(drawn(lambda s, _: s, n=500), "isotonic").arrays()
    ((name, spoil),) = change.items()
    key = f"calibration.{name}"
    with pytest.raises(FormatError):
        Calibration.restore("isotonic", {**arrays, key: spoil(arrays[key])})
