"""Bootstrap intervals: they hold as often as they say, and pairing narrows them."""

import numpy as np
import pytest

from labelwood import LabelwoodError
from labelwood.metrics import bootstrap_intervals, evaluate, paired_intervals
from labelwood.sparse import TopK, from_lists


def prediction(right):
    """One true label a row (label 0), predicted first where ``right``."""
    labels = np.where(np.asarray(right)[:, None], [[0, 1]], [[1, 2]]).astype(np.int32)
    return TopK(labels, np.tile(np.array([2.0, 1.0], np.float32), (len(labels), 1)))


def truth(n_rows):
    return from_lists([[0]] * n_rows, n_cols=3)


def test_the_mean_is_the_metric():
    top = prediction(np.arange(50) % 3 == 0)
    found = bootstrap_intervals(truth(50), top, [1, 2], n_resamples=20)
    figures = evaluate(truth(50), top, [1, 2])
    for name, interval in found.items():
        assert interval.mean == pytest.approx(figures[name])
        assert interval.low <= interval.mean <= interval.high
    assert set(found) == {"P@1", "P@2", "R@1", "R@2", "nDCG@1", "nDCG@2"}


def test_intervals_hold_as_often_as_they_say():
    random, inside = np.random.default_rng(0), 0
    for trial in range(100):
        top = prediction(random.random(200) < 0.3)
        low, high = bootstrap_intervals(truth(200), top, [1], n_resamples=200, seed=trial)["P@1"][1:]
        inside += low <= 0.3 <= high
    assert 88 <= inside <= 100


def test_pairing_narrows_the_interval():
    random = np.random.default_rng(1)
    right = random.random(400) < 0.5
    better = right | (random.random(400) < 0.1)
    pair = paired_intervals((truth(400), prediction(right)), (truth(400), prediction(better)), [1])["P@1"]
    alone = bootstrap_intervals(truth(400), prediction(right), [1])["P@1"]
    assert pair.mean == pytest.approx(better.mean() - right.mean())
    assert pair.high - pair.low < 0.7 * (alone.high - alone.low)
    assert pair.low > 0, "the second is better beyond chance"
    same = paired_intervals((truth(400), prediction(right)), (truth(400), prediction(right)), [1])["P@1"]
    assert same == (0, 0, 0)


def test_the_same_seed_gives_the_same_interval():
    top = prediction(np.arange(30) % 2 == 0)
    first, again, other = (bootstrap_intervals(truth(30), top, [1], seed=seed)["P@1"] for seed in (3, 3, 4))
    assert first == again
    assert first != other or first.low == other.low


def test_wrong_values_are_refused():
    top = prediction([True, False])
    with pytest.raises(LabelwoodError, match="n_resamples must be at least 1"):
        bootstrap_intervals(truth(2), top, [1], n_resamples=0)
    with pytest.raises(LabelwoodError, match="same rows; got 2 and 3"):
        paired_intervals((truth(2), top), (truth(3), prediction([True] * 3)), [1])
