"""Blend: what is particular about several models as one."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import Blend, CraftForest, LabelwoodError, LinearTree, OneVsRest
from labelwood.metrics import precision_at_k
from labelwood.scoring.mix import Mix, even, search_mix
from labelwood.sparse import TopK, from_lists


def lists(*rows):
    """One row's list of (label, score) pairs as a TopK."""
    width = max(map(len, rows))
    labels = np.full((len(rows), width), -1, np.int32)
    scores = np.zeros((len(rows), width), np.float32)
    for number, row in enumerate(rows):
        for place, (label, score) in enumerate(row):
            labels[number, place], scores[number, place] = label, score
    return TopK(labels, scores)


def test_a_mix_by_hand():
    one, other = lists([(0, 0.81), (1, 0.25)]), lists([(1, 0.5), (2, 0.4)])
    mix = Mix((0.25, 0.75), (2.0, 1.0))
    found = mix.combine([one, other], 3)
    assert found.labels.tolist() == [[1, 2, 0]]
    np.testing.assert_allclose(found.scores, [[0.25 * 0.5 + 0.75 * 0.5, 0.75 * 0.4, 0.25 * 0.9]], rtol=1e-6)
    ranked = Mix((0.5, 0.5), (1.0, 1.0), by_rank=True).combine([one, other], 3)
    assert ranked.labels.tolist() == [[1, 0, 2]]
    np.testing.assert_allclose(ranked.scores, [[0.75, 0.5, 0.25]], rtol=1e-6)


def test_the_search_trusts_the_member_that_is_right():
    random = np.random.default_rng(0)
    truth = random.integers(20, size=200)
    right = lists(*([(int(label), 0.3), (int(label + 1) % 20, 0.2)] for label in truth))
    wrong = lists(*([(int(label), 0.9), (int(label + 3) % 20, 0.8)] for label in random.integers(20, size=200)))
    Y = from_lists([[int(label)] for label in truth], 20)
    mix, reached = search_mix([right, wrong], lambda top: precision_at_k(Y, top, 1), 2, by_rank=False, fixed=None)
    assert reached == 1
    assert reached > precision_at_k(Y, even(2).combine([right, wrong], 2), 1)
    assert mix.weights[0] > mix.weights[1]


@pytest.fixture(scope="module")
def blend(planted):
    models = [LinearTree(arity=4), "one-vs-rest", {"method": "craft-forest", "n_trees": 5}]
    return Blend(models, n_jobs=1, decide="micro-f1").fit(planted.X, planted.names)


def test_models_are_taken_in_every_form(blend):
    assert [type(member) for member in blend.members_] == [LinearTree, OneVsRest, CraftForest]
    assert blend.members_[0].arity == 4
    assert blend.members_[2].n_trees == 5
    assert sum(blend.mix_.weights) == pytest.approx(1)
    assert blend.held_out_["blend"] >= max(blend.held_out_["members"])
    assert blend.trained_["rows"] == blend.members_[0].trained_["rows"]  # trained again on all rows


def test_it_saves_as_one_directory(blend, planted_test, tmp_path):
    blend.save(tmp_path / "blend")
    assert all(file.is_file() for file in (tmp_path / "blend").iterdir())
    loaded = labelwood.load(tmp_path / "blend")
    assert loaded.mix_ == blend.mix_
    assert loaded.decided() == blend.decided()
    assert loaded.get_params()["models"][0] == {"method": "linear-tree", "arity": 4}
    for left, right in zip(blend.predict_topk(planted_test.X), loaded.predict_topk(planted_test.X), strict=True):
        np.testing.assert_array_equal(left, right)
    assert blend.threshold_ is not None


def test_it_explains_through_its_members(blend, planted_test):
    row = planted_test.X[:1]
    (explanation,) = blend.explain(row, 3, missed=["label-0003"])
    assert [member.method for member in explanation.members] == ["linear-tree", "one-vs-rest", "craft-forest"]
    labels, probabilities = blend.predict_topk(row, 3)
    for suggestion, label, probability in zip(explanation.suggestions, labels[0], probabilities[0], strict=True):
        assert suggestion.label == label
        assert sum(suggestion.amounts) == pytest.approx(suggestion.score, rel=1e-5)
        assert suggestion.probability == pytest.approx(float(probability), abs=1e-6)
    assert explanation.members[0].explanation.suggestions[0].paths
    assert explanation.members[2].explanation.routes
    assert explanation.members[0].explanation.missed[0].label == "label-0003"
    assert explanation.missed[0].label == "label-0003"


def test_fitted_models_are_blended_as_they_are(planted, planted_test):
    members = [LinearTree(n_jobs=1).fit(planted.X, planted.names), OneVsRest(n_jobs=1).fit(planted.X, planted.names)]
    blend = Blend.of(members, [3, 1], n_jobs=1)
    assert blend.mix_.weights == (0.75, 0.25)
    assert blend.score(planted_test.X, planted_test.names) > 0.9
    before = [model.predict_topk(planted_test.X)[1] for model in members]
    blend.learn(planted_test.X, planted_test.names)
    assert blend.mix_.weights == (0.75, 0.25)  # given weights stay
    learnt = Blend.of(members, n_jobs=1).learn(planted_test.X, planted_test.names)
    assert learnt.decided()
    for model, scores in zip(members, before, strict=True):
        np.testing.assert_array_equal(model.predict_topk(planted_test.X)[1], scores)
    other = LinearTree(n_jobs=1).fit(planted.X, planted.Y)
    with pytest.raises(LabelwoodError, match="same labels and features"):
        Blend.of([members[0], other])


def test_the_tail_objective_is_one_switch(planted, planted_test):
    models = ["linear-tree", {"method": "craft-forest", "n_trees": 5}]
    plain = Blend(models, n_jobs=1).fit(planted.X, planted.Y)
    tail = Blend(models, objective="tail", n_jobs=1).fit(planted.X, planted.Y)
    asked = plain.predict_topk(planted_test.X, objective="tail")[0]
    assert [hasattr(member, "tail_") for member in tail.members_] == [False, True]
    assert tail.score(planted_test.X, planted_test.Y) > 0.8
    assert plain.label_counts_[asked].sum() <= plain.label_counts_[plain.predict_topk(planted_test.X)[0]].sum()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"models": []}, "models must name at least one model"),
        ({"models": ["oak"]}, "models must be among .*; got 'oak'"),
        ({"models": [{"method": "linear-tree", "leaves": 3}]}, "leaves"),
        ({"models": [7]}, "models must be methods, .*; got 7"),
        ({"models": ["linear-tree"], "weights": [1, 2]}, "weights must be 1 numbers"),
        ({"models": ["linear-tree"], "weights": [0]}, "not all 0"),
        ({"held_out": 0.95}, "held_out must be at most 0.9"),
        ({"mode": "vote"}, "mode must be one of"),
    ],
)
def test_bad_parameters(parameters, message, planted):
    with pytest.raises(LabelwoodError, match=message):
        Blend(n_jobs=1, **parameters).fit(planted.X, planted.Y)


@pytest.fixture(scope="module")
def voted():
    """A blend on rows whose words say little and whose vectors lie near those of the same label."""
    random = np.random.default_rng(0)
    label = random.integers(30, size=400)
    vectors = (random.standard_normal((30, 12))[label] + 0.3 * random.standard_normal((400, 12))).astype(np.float32)
    words = sp.csr_array((random.random((400, 40)) < 0.1).astype(np.float32))
    rows, Y = {"words": words, "vectors": vectors}, [[f"l{one}"] for one in label]
    return Blend([{"method": "linear-tree"}], similar_rows=10, n_jobs=1).fit(rows, Y), rows, Y


def test_similar_rows_vote_as_members(voted):
    model, rows, Y = voted
    assert model.describe()["members"] == ["linear-tree", "similar rows", "similar rows"]
    assert len(model.mix_.weights) == len(model.held_out_["members"]) == 3
    assert sum(model.mix_.weights) == pytest.approx(1)
    of_words, of_vectors = model.held_out_["members"][1:]
    assert of_vectors > 2 * of_words
    assert model.held_out_["blend"] >= max(model.held_out_["members"])
    assert model.score(rows, Y) > 0.9
    alone = Blend([{"method": "linear-tree"}], n_jobs=1).fit(rows, Y)
    assert alone.similar_ is None
    assert alone.describe()["members"] == ["linear-tree"]


def test_votes_are_saved_explained_and_restricted(voted, tmp_path):
    model, rows, _ = voted
    few = {name: block[:20] for name, block in rows.items()}
    model.save(tmp_path / "model")
    loaded = labelwood.load(tmp_path / "model", verify=True)
    for left, right in zip(model.predict_topk(few), loaded.predict_topk(few), strict=True):
        np.testing.assert_array_equal(left, right)
    for explanation in model.explain(few, 2):
        assert [member.method for member in explanation.members] == ["linear-tree", "similar rows", "similar rows"]
        for suggestion in explanation.suggestions:
            assert sum(suggestion.amounts) == pytest.approx(suggestion.score, abs=1e-6)
    labels, _ = model.predict_topk(few, 2, allowed=["l3", "l7"])
    assert set(np.unique(labels.astype(str))) <= {"l3", "l7", "None", ""}
    two = Blend([{"method": "linear-tree"}], similar_rows=10, n_jobs=2).fit(rows, voted[2])
    for left, right in zip(model.predict_topk(few), two.predict_topk(few), strict=True):
        np.testing.assert_array_equal(left, right)


def test_votes_need_their_weights(voted):
    _, rows, Y = voted
    with pytest.raises(LabelwoodError, match="weights must be 3 numbers"):
        Blend(["linear-tree"], [1.0], similar_rows=5, n_jobs=1).fit(rows, Y)
    silent = Blend(["linear-tree"], [1.0, 0.0, 0.0], similar_rows=5, n_jobs=1).fit(rows, Y)
    assert silent.score(rows, Y) > 0.5
    fitted = Blend.of([LinearTree(n_jobs=1).fit(rows, Y)])
    assert fitted.similar_ is None
