"""LivingTree: refits, the mix, and a state that does not depend on the batches in which rows came."""

import copy
import pickle
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import living_tree as twin
from serving import assert_same_state

from labelwood import LabelwoodError, LinearTree, LivingTree, OnlineTree, load
from labelwood.methods.online.living_batch import train_batch
from labelwood.methods.online.newness_mix import Lists, NewnessMix, quality_of, search_newness_mix
from labelwood.sparse import TopK, from_lists


def stream(count, seed=0, n_labels=20, n_features=60):
    """Rows whose label shows in their features; labels appear over time."""
    random = np.random.default_rng(seed)
    rows, labels = [], []
    for number in range(count):
        label = int(random.integers(0, 3 + n_labels * number // count))
        words = {(3 * label + int(random.integers(0, 3))) % n_features, int(random.integers(0, n_features))}
        rows.append(dict.fromkeys(words, 1.0))
        labels.append([f"label {label}"])
    return rows, labels


def living(**parameters):
    return LivingTree(n_jobs=1, **{"refit_rows": 100, "recent": 50, **parameters})


def test_the_mix_by_hand():
    lists, share = ({1: 0.25, 2: 0.5}, {1: 0.4, 3: 0.9}, {2: 0.6, 4: 0.2}), {1: 1.0, 2: 0.5}
    scores = twin.mixed(*lists, share, 0.8, 2.0, 1.0, 1.1, 0.0)
    assert scores == pytest.approx({1: 0.8 * 0.5 + 0.2 * 0.4, 2: 0.4 * 0.5**0.5, 3: 0.99, 4: 0.0})
    half = twin.mixed(*lists, share, 0.8, 2.0, 1.0, 1.1, 0.5)
    assert half == pytest.approx({1: scores[1] / 2, 2: scores[2] / 2 + 0.3, 3: 0.495, 4: 0.1})


LISTS = st.lists(st.dictionaries(st.integers(0, 9), st.floats(0, 1, width=32), max_size=4), min_size=3, max_size=3)


@settings(max_examples=80, deadline=None)
@given(
    batch=LISTS, online=LISTS, nearest=LISTS,
    shares=st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=10, max_size=10),
    weight=st.sampled_from([0.0, 0.3, 1.0]), temperature=st.sampled_from([0.5, 1.0, 3.0]),
    newness=st.sampled_from([0.0, 0.25, 1.0]), boost=st.sampled_from([1.0, 2.0]),
    nearness=st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def test_the_mix_is_that_of_the_twin(batch, online, nearest, shares, weight, temperature, newness, boost, nearness):
    numbers = (weight, temperature, newness, boost, nearness)
    mix, table = NewnessMix(*numbers), np.array(shares)
    lists = Lists(as_lists(batch), as_lists(online), as_lists(nearest))
    found = mix.combine(lists, lambda ids: np.where(ids >= 0, table[ids], 0.0), 12)
    for row in range(3):
        expected = twin.mixed(batch[row], online[row], nearest[row], dict(enumerate(shares)), *numbers)
        got = dict(zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True))
        got.pop(-1, None)
        assert got == pytest.approx(expected, abs=1e-6)
        assert (np.diff(found.scores[row]) <= 0).all()


def as_lists(rows):
    labels, scores = np.full((len(rows), 4), -1, np.int32), np.zeros((len(rows), 4), np.float32)
    for number, row in enumerate(rows):
        ordered = sorted(row.items(), key=lambda pair: (-pair[1], pair[0]))
        for place, (label, score) in enumerate(ordered):
            labels[number, place], scores[number, place] = label, score
    return TopK(labels, scores)


def test_quality_by_hand():
    top = TopK(np.array([[0, 1, 2, 3, 4], [5, 6, 7, 8, -1], [1, 2, 3, 4, 5]], np.int32), np.zeros((3, 5), np.float32))
    judged = quality_of(top, from_lists([[0, 4], [8], []], 9))
    assert judged.n_rows == 2
    assert judged.quality == pytest.approx(np.mean([1 / 2, 1 / 6, (2 / 5 + 1 / 5) / 2]))


def test_the_search_finds_the_better_model():
    truth = from_lists([[row % 5] for row in range(40)], 6)
    right = TopK(truth.indices.reshape(-1, 1), np.full((40, 1), 0.6, np.float32))
    wrong = TopK(np.full((40, 1), 5, np.int32), np.full((40, 1), 0.9, np.float32))
    ones = partial(np.ones_like, dtype=float)
    mix, judged = search_newness_mix(NewnessMix(), Lists(right, wrong, wrong), ones, truth)
    assert judged.quality == pytest.approx((1 + 1 / 3 + 1 / 5) / 3)
    other, _ = search_newness_mix(NewnessMix(), Lists(wrong, right, wrong), ones, truth)
    assert other.weight < mix.weight
    near, judged = search_newness_mix(NewnessMix(), Lists(wrong, wrong, right), ones, truth)
    assert near.nearness > 0.3
    assert judged.quality == pytest.approx((1 + 1 / 3 + 1 / 5) / 3)


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"max_rows": 150},
        {"keep": "sample", "max_rows": 150},
        {"max_bytes": 6000, "keep": "sample", "half_life": 80},
        {"neighbor_rows": 200, "max_rows": 150},
        {"neighbors": 0},
    ],
)
def test_batches_make_no_difference(bounds, tmp_path):
    rows, labels = stream(700)
    whole = living(**bounds).partial_fit(rows, labels)
    parts, start = living(**bounds), 0
    for size in (1, 2, 130, 5, 300, 262):
        parts.partial_fit(rows[start : start + size], labels[start : start + size])
        start += size
        if size == 5:  # saved and loaded on the way
            parts.save(tmp_path / "model")
            parts = load(tmp_path / "model")
        if size == 300:
            parts = pickle.loads(pickle.dumps(parts))
    assert whole.n_refits_ == parts.n_refits_ > 2
    assert_same_state(whole, parts)


def test_a_refit_trains_what_linear_tree_trains():
    rows, labels = stream(400)
    model = living(refits="asked").partial_fit(rows, labels)
    job = model.begin_refit()
    assert job.rows.positions.tolist() == [row for row in range(400) if row % 8]  # every eighth row judges
    batch = train_batch(job, n_jobs=1)
    alone = LinearTree(n_jobs=1, random_state=1).fit(job.rows.X, job.rows.Y.to_scipy()[:, batch.labels])
    for found, expected in zip(batch.tree.topk_ids(job.rows.X, 3), alone.topk_ids(job.rows.X, 3), strict=True):
        np.testing.assert_array_equal(found, expected)
    result = model.end_refit(batch)
    assert result.taken
    assert result.after >= result.before
    assert model.describe()["batch_age"] == 0


def test_better_than_online_alone_and_knows_new_labels_at_once():
    rows, labels = stream(3000, n_labels=40, n_features=200)
    model, alone = living(), OnlineTree(n_jobs=1)
    mine, its = (one.progressive(rows, labels).hits[-600:, 0].mean() for one in (model, alone))
    assert mine >= its
    for one in (model, alone):
        one.partial_fit([{500: 1.0, 501: 1.0}] * 12, [["brand new"]] * 12)
    mine, its = (
        one.predict_topk([{500: 1.0, 501: 1.0}], 43)[0][0].tolist().index("brand new") for one in (model, alone)
    )
    assert mine <= its


def test_a_worse_refit_is_not_taken_up():
    rows, labels = stream(600)
    model = living(refits="asked", online={"learning_rate": 0.01}).partial_fit(rows, labels)  # the batch tree matters
    assert model.refit().taken
    before = copy.deepcopy(model)
    job = model.begin_refit()
    Y = job.rows.Y
    wrong = type(Y)(Y.indptr, ((Y.indices + 1) % Y.n_cols).astype(np.int32), Y.data, Y.n_cols)
    bad = train_batch(
        type(job)(type(job.rows)(job.rows.positions, job.rows.X, wrong), job.parameters, job.seed, job.until), n_jobs=1
    )
    result = model.end_refit(bad)
    assert not result.taken
    assert "worse" in result.reason
    np.testing.assert_array_equal(model.predict_topk(rows, 5)[1], before.predict_topk(rows, 5)[1])


def test_quality_that_falls_makes_a_refit_due():
    rows, labels = stream(1200)
    model = living(refits="asked", refit_growth=100.0, refit_fall=0.1, recent=50).partial_fit(rows, labels)
    assert model.refit_due.endswith("rows are new")  # the first time
    model.refit()
    assert not model.partial_fit(rows, labels).refit_due
    assert model.partial_fit(rows, labels[::-1]).refit_due.startswith("quality fell from")


def test_labels_retire_merge_and_return_in_both_trees():
    rows, labels = stream(400)
    model = living().partial_fit(rows, labels)
    assert model.n_refits_
    row = [rows[labels.index(["label 1"])]]
    model.labels.retire("label 1")
    assert "label 1" not in model.predict_topk(row, 20)[0][0].tolist()
    model.labels.restore("label 1")
    assert "label 1" in model.predict_topk(row, 3)[0][0].tolist()
    model.labels.merge("label 1", "label 2")
    found = model.predict_topk(row, 20)[0][0].tolist()
    assert "label 1" not in found
    assert found.count("label 2") == 1
    allowed, _ = model.predict_topk(row, 2, allowed=["label 2", "label 3"])
    assert set(allowed[0].tolist()) == {"label 2", "label 3"}
    frozen = model.freeze()
    assert not frozen.can_learn
    np.testing.assert_allclose(frozen.predict_topk(rows, 5)[1], model.predict_topk(rows, 5)[1], rtol=1e-4, atol=1e-5)


def test_a_frozen_model_with_few_labels_left():
    rows, labels = stream(400)
    model = living().partial_fit(rows, labels)
    for name in model.classes_[1:]:
        model.labels.retire(name)
    one = [str(model.classes_[0])]
    for each in (model, model.freeze()):
        assert [name for name in each.predict_topk(rows[:1], 3)[0][0] if name is not None] == one
    model.labels.retire(one[0])
    assert model.freeze().predict_topk(rows[:1], 3)[1].tolist() == [[0.0] * 3]


def test_learning_goes_on_beside_a_refit():
    rows, labels = stream(900)
    model = living(refits="asked").partial_fit(rows[:500], labels[:500])
    thread = threading.Thread(target=model.refit)
    thread.start()
    for start in range(500, 900, 40):
        model.partial_fit(rows[start : start + 40], labels[start : start + 40])
    thread.join()
    assert model.n_seen_ == 900
    assert model.describe()["batch_rows"] >= 430


def drifting(count, seed=0):
    """Rows with a rare word that tells the label; labels come in bursts, and new ones all the time."""
    random = np.random.default_rng(seed)
    rows, labels = [], []
    for number in range(count):
        label = number // 12 - int(random.integers(0, 3))
        rows.append({0: 1.0, int(random.integers(1, 40)): 1.0, 100 + label % 5000: 1.0})
        labels.append([f"label {label}"])
    return rows, labels


def test_the_nearest_rows_know_what_drifts():
    rows, labels = drifting(2600)
    without, model = (living(recent=400, neighbors=count) for count in (0, 10))
    hits = [one.progressive(rows, labels, k=5).hits[-600:, 0].mean() for one in (without, model)]
    assert model.mix_.nearness > 0
    assert hits[1] > hits[0] + 0.04
    text = str(model.explain(rows[-1:], k=2)[0])
    assert "nearest rows" in text
    last = labels[-1][0]
    assert model.predict_topk(rows[-1:], 1, allowed=[last, "label 3"])[0][0].tolist() == [last]
    np.testing.assert_allclose(
        model.freeze().predict_topk(rows[-50:], 5)[1], model.predict_topk(rows[-50:], 5)[1], rtol=1e-4, atol=1e-5
    )
    model.labels.retire(last)
    assert last not in model.predict_topk(rows[-1:], 5)[0][0].tolist()


def test_the_window_of_rows_that_vote_moves(tmp_path):
    rows, labels = drifting(1400)
    model = living(neighbor_rows=256, refits="asked").partial_fit(rows, labels)
    frozen = model.freeze()
    frozen.save(tmp_path / "frozen")
    positions = load(tmp_path / "frozen").to_saved()[1]["rows.positions"]
    assert positions[-1] == 1399
    assert 256 <= len(positions) < 256 + 128
    found = load(tmp_path / "frozen").predict_topk(rows[-20:], 5)
    np.testing.assert_array_equal(found[1], frozen.predict_topk(rows[-20:], 5)[1])


def test_errors():
    with pytest.raises(LabelwoodError, match="batch must hold parameters of LinearTree"):
        living(batch={"no": 1}).partial_fit([{0: 1.0}], [["a"]])
    with pytest.raises(LabelwoodError, match="online must hold parameters of OnlineTree"):
        living(online={"no": 1}).partial_fit([{0: 1.0}], [["a"]])
    model = living(refits="asked").partial_fit(*stream(30))
    with pytest.raises(LabelwoodError, match="feature ids must be at most"):
        model.partial_fit([{2**40: 1.0}], [["a"]])
    model.begin_refit()
    with pytest.raises(LabelwoodError, match="a refit is under way"):
        model.refit()
    model.drop_refit("enough")
    assert model.last_refit_.reason == "enough"
    with pytest.raises(LabelwoodError, match="no refit is under way"):
        model.drop_refit("again")
    empty = living(refits="asked").partial_fit([{0: 1.0}] * 20, [[]] * 20)
    assert not empty.refit().taken
