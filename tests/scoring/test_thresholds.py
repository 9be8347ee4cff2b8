"""Thresholds and label weights against exhaustive search."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labelwood
from labelwood import LabelwoodError
from labelwood.metrics import calibration_error, psp_at_k, set_scores
from labelwood.metrics.propensity import inverse_propensities
from labelwood.scoring.calibration import Listed
from labelwood.scoring.thresholds import Decisions, best, choose_thresholds, label_weights
from labelwood.sparse import CSR, TopK, from_scipy


def f1(right, predicted, positive):
    return 2 * right / (predicted + positive) if predicted + positive else 0.0


def judged(listed, n_positive, thresholds):
    """Micro-F1 and the sum of the labels' F1, counted the plain way."""
    taken = listed.scores >= thresholds[listed.labels]
    counts = [
        (int((listed.hits & taken)[listed.labels == j].sum()), int(taken[listed.labels == j].sum()), int(n))
        for j, n in enumerate(n_positive)
    ]
    right, predicted, positive = map(sum, zip(*counts, strict=True))
    return f1(right, predicted, positive), sum(f1(*count) for count in counts)


items = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0.125, 0.25, 0.5, 0.625, 0.875]), st.booleans()),
    min_size=1,
    max_size=14,
)


def listed_of(entries):
    labels, scores, hits = (np.array(column) for column in zip(*entries, strict=True))
    return Listed(np.arange(len(labels)), labels.astype(np.int32), scores.astype(np.float64), hits.astype(np.bool_))


@given(items, st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_the_common_threshold_is_the_best_there_is(entries, missed):
    listed = listed_of(entries)
    n_positive = np.bincount(listed.labels[listed.hits], minlength=3) + np.array(missed)
    for place, target in enumerate(("micro-f1", "macro-f1")):
        chosen = choose_thresholds(Decisions(), listed, n_positive, target, level=0.9, per_label=False)
        possible = [judged(listed, n_positive, np.full(3, cut))[place] for cut in np.unique(listed.scores)]
        reached = judged(listed, n_positive, np.full(3, chosen.threshold))[place]
        assert reached == pytest.approx(max(possible))


@settings(max_examples=40)
@given(items, st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_thresholds_of_labels_are_the_best_there_are(entries, missed):
    repeated = [entry for entry in entries for _ in range(5)]  # so that labels are right often enough
    listed = listed_of(repeated)
    n_positive = np.bincount(listed.labels[listed.hits], minlength=3) + np.array(missed)
    never_right = np.bincount(listed.labels[listed.hits], minlength=3) == 0
    cuts = [*np.unique(listed.scores).tolist(), 2.0]
    for place, target in enumerate(("micro-f1", "macro-f1")):
        chosen = choose_thresholds(Decisions(), listed, n_positive, target, level=0.9, per_label=True)
        own = np.where(never_right, 2.0, chosen.label_thresholds.astype(np.float64))
        possible = [
            judged(listed, n_positive, np.where(never_right, 2.0, np.array(combination)))[place]
            for combination in itertools.product(cuts, repeat=3)
        ]
        assert judged(listed, n_positive, own)[place] == pytest.approx(max(possible))


@given(items)
def test_a_precision_asked_for_is_reached_with_as_many_labels_as_possible(entries):
    listed = listed_of(entries)
    n_positive = np.bincount(listed.labels[listed.hits], minlength=3)
    chosen = choose_thresholds(Decisions(), listed, n_positive, "precision", level=0.75, per_label=False)
    taken = listed.scores >= chosen.threshold
    assert listed.hits[taken].sum() >= 0.75 * taken.sum()
    for cut in np.unique(listed.scores):
        more = listed.scores >= cut
        assert listed.hits[more].sum() < 0.75 * more.sum() or more.sum() <= taken.sum()


def test_best_orders_by_the_new_scores_and_leaves_padding_last():
    top = TopK(np.array([[4, 2, 7, -1]], np.int32), np.array([[0.9, 0.5, 0.4, 0]], np.float32))
    found = best(top, np.array([[0.1, 0.3, 0.3, 9.0]]), 3)
    assert found.labels.tolist() == [[2, 7, 4]]
    assert best(top, np.array([[0.1, 0.3, 0.3, 9.0]]), 4).labels.tolist() == [[2, 7, 4, -1]]


def test_weights_make_the_expected_gain_largest():
    """Labels whose probability is known: the list by probability times weight has the highest PSP there is."""
    random = np.random.default_rng(0)
    n_rows, n_labels = 3000, 12
    counts = (np.arange(1, n_labels + 1) ** 3).astype(np.int64)
    chance = random.random((n_rows, n_labels))
    truth = random.random((n_rows, n_labels)) < chance
    rows, columns = np.nonzero(truth)
    Y = CSR(
        np.append(0, np.cumsum(truth.sum(axis=1))), columns.astype(np.int32), np.ones(len(rows), np.float32), n_labels
    )
    order = np.argsort(-chance, axis=1)
    top = TopK(order.astype(np.int32), np.take_along_axis(chance, order, 1).astype(np.float32))
    inverse = inverse_propensities(counts, 10_000)

    def gain(strength):
        weights = label_weights("tail", counts, 10_000, strength=strength)
        return psp_at_k(Y, Decisions().apply(top, 3, weights), 3, inverse)

    assert gain(1.0) > max(gain(0.0), gain(0.5), gain(2.0))


def test_objectives():
    counts = np.array([1, 10, 100])
    assert label_weights("precision", counts, 1000) is None
    for objective in ("tail", "macro"):
        weights = label_weights(objective, counts, 1000)
        assert weights.max() == 1
        assert (np.diff(weights) < 0).all()
    with pytest.raises(LabelwoodError, match="objective must be one of"):
        label_weights("best", counts, 1000)


@pytest.fixture(scope="module")
def rows():
    """Labels that depend on the features by chance, so that probabilities are far from 0 and 1."""
    random = np.random.default_rng(5)
    X = random.random((1200, 20)).astype(np.float32)
    chance = 1 / (1 + np.exp(-6 * (X[:, :8] - np.linspace(0.4, 0.95, 8))))
    Y = (random.random(chance.shape) < chance).astype(np.float32)
    return (X[:600], Y[:600]), (X[600:900], Y[600:900]), (X[900:], Y[900:])


@pytest.fixture
def model(rows):
    return labelwood.LinearTree(n_jobs=1, arity=2, max_leaf=2).fit(*rows[0])


def test_calibrating_helps_and_is_saved(rows, model, tmp_path):
    X, Y = rows[2]
    truth = model.encode_labels(Y)
    before = calibration_error(truth, model.topk_ids(X, 5))
    model.calibrate(*rows[1])
    after = calibration_error(truth, model.topk_ids(X, 5))
    assert after < before
    model.choose_thresholds(*rows[1], target="macro-f1", per_label=True)
    model.save(tmp_path / "model")
    loaded = labelwood.load(tmp_path / "model")
    assert loaded.decided() == model.decided()
    np.testing.assert_array_equal(loaded.predict_topk(X, 3)[1], model.predict_topk(X, 3)[1])
    np.testing.assert_array_equal(loaded.predict(X).toarray(), model.predict(X).toarray())


def test_chosen_thresholds_are_what_predict_uses(rows, model):
    X, Y = rows[2]
    truth = model.encode_labels(Y)
    model.calibrate(*rows[1])
    fixed = set_scores(truth, from_scipy(model.predict(X)))["microF1"]
    model.choose_thresholds(*rows[1])
    assert set_scores(truth, from_scipy(model.predict(X)))["microF1"] > fixed
    everything = model.predict_proba(X, k=8).toarray()
    np.testing.assert_array_equal(model.predict(X).toarray() > 0, everything >= np.float32(model.threshold_))
    model.choose_thresholds(*rows[1], target="macro-f1", per_label=True)
    cuts = model.thresholds_of(model.classes_)
    assert len(set(cuts.tolist())) > 1
    np.testing.assert_array_equal(model.predict(X).toarray() > 0, everything >= cuts)


def test_fitting_again_forgets(rows, model):
    model.calibrate(*rows[1]).choose_thresholds(*rows[1])
    assert model.decided().keys() == {"calibration", "threshold"}
    assert model.fit(*rows[0]).decided() == {}


def test_the_tail_comes_forward(rows, model):
    X, _ = rows[2]
    plain, tail = model.predict_topk(X, 3)[0], model.predict_topk(X, 3, objective="tail")[0]
    assert model.label_counts_[tail].sum() < model.label_counts_[plain].sum()


def test_what_cannot_be_asked(rows, model):
    X, Y = rows[1]
    with pytest.raises(LabelwoodError, match="method must be auto, isotonic or platt; got 'best'"):
        model.calibrate(X, Y, method="best")
    with pytest.raises(LabelwoodError, match="target must be one of"):
        model.choose_thresholds(X, Y, target="recall")
    with pytest.raises(LabelwoodError, match="same number of rows"):
        model.calibrate(X, Y[:-1])
    forest = labelwood.CraftForest(n_jobs=1, n_trees=2).fit(*rows[0])
    with pytest.raises(LabelwoodError, match="by_depth must be false"):
        forest.calibrate(X, Y, by_depth=True)


def test_explanations_tell_what_scores_mean(rows, model):
    X, _ = rows[2]
    assert model.explain(X[:1], 2)[0].suggestions[0].probability is None
    model.calibrate(*rows[1], by_depth=False)
    suggestion = model.explain(X[:1], 2)[0].suggestions[0]
    assert suggestion.probability == pytest.approx(float(model.predict_topk(X[:1], 1)[1][0, 0]), abs=1e-6)
