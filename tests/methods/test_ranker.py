"""Ranker: what is particular about a second look."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import CraftForest, FormatError, LabelwoodError, LinearTree, Ranker, TextClassifier, TfidfEncoder
from labelwood.storage.model_directory import read_model, write_model

FEW = ["linear-tree", {"method": "craft-forest", "n_trees": 4}]


@pytest.fixture(scope="module")
def ranker(planted):
    return Ranker(FEW, n_jobs=1, n_boosted=10).fit(planted.X, planted.names)


def test_members_are_taken_in_every_form(planted):
    model = Ranker([LinearTree(arity=4), "one-vs-rest", FEW[1]], n_jobs=1, n_boosted=2, folds=1)
    model.fit(planted.X, planted.names)
    assert [member.method_name for member in model.members_] == ["linear-tree", "one-vs-rest", "craft-forest"]
    assert isinstance(model.members_[2], CraftForest)
    assert model.members_[0].trained_["rows"] == planted.X.shape[0], "trained again on all rows"
    assert model.describe()["boosted_trees"] == 2


@pytest.mark.parametrize(
    ("models", "said"),
    [([], "at least one"), (["no-method"], "among"), ([3], "methods"), ([{"method": "linear-tree", "x": 1}], "x")],
)
def test_unknown_members_are_refused(planted, models, said):
    with pytest.raises(LabelwoodError, match=f"Ranker: .*{said}"):
        Ranker(models).fit(planted.X, planted.names)


@pytest.mark.parametrize(("n_labels", "first"), [(60, "one-vs-rest"), (6001, "linear-tree")])
def test_the_default_members_follow_the_number_of_labels(planted, n_labels, first):
    Y = planted.Y[:100].tocoo()
    wide = sp.csr_array((Y.data, (Y.row, Y.col)), shape=(100, n_labels))
    members = Ranker(n_boosted=1, folds=1, n_jobs=1).fit(planted.X[:100], wide).members_
    assert [member.method_name for member in members] == [first, "craft-forest"]


def test_scores_are_probabilities(ranker, planted_test):
    top = ranker.topk_ids(planted_test.X, 5)
    assert ((top.scores >= 0) & (top.scores <= 1)).all()
    right = ranker.encode_labels(planted_test.names).to_scipy().toarray() > 0
    rows, places = np.nonzero(top.labels >= 0)
    hits = right[rows, top.labels[rows, places]]
    assert top.scores[rows, places][hits].mean() > top.scores[rows, places][~hits].mean() + 0.3


def test_an_explanation_adds_up(ranker, planted_test):
    found = ranker.explain(planted_test.X[:3], k=2)
    for explanation in found:
        assert [member.method for member in explanation.members] == ["linear-tree", "craft-forest"]
        for suggestion in explanation.suggestions:
            odds = sum(clue.amount for clue in suggestion.clues)
            assert suggestion.score == pytest.approx(1 / (1 + np.exp(-odds)), rel=1e-5)
            assert suggestion.clues[0].what == "any candidate"


def test_without_enough_rows_the_members_are_averaged():
    X, Y = np.eye(6, dtype=np.float32), [["a"], ["a"], ["b"], ["b"], ["c"], ["c"]]
    model = Ranker(["linear-tree", "one-vs-rest"], n_jobs=1).fit(X, Y)
    assert model.second_look_ is None
    assert model.predict_topk(X, 1)[0][:, 0].tolist() == ["a", "a", "b", "b", "c", "c"]
    assert model.explain(X[:1], k=1)[0].suggestions[0].clues == ()


def swapped(children):
    first = int(np.flatnonzero(children >= 0)[0])
    children[first] = first  # its own child
    return children


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("boosted.children", swapped),
        ("boosted.children", lambda a: np.where(a >= 0, 10**6, a).astype(np.int32)),
        ("boosted.features", lambda a: np.full_like(a, 99)),
        ("boosted.features", lambda a: a - 1),
        ("boosted.roots", lambda a: a[::-1].copy()),
        ("boosted.roots", lambda a: a + 1),
        ("boosted.thresholds", lambda a: np.full_like(a, np.nan)),
        ("boosted.values", lambda a: np.full_like(a, np.inf)),
        ("boosted.values", lambda a: a[:-1]),
        ("boosted.start", lambda a: np.full_like(a, np.nan)),
        ("boosted.start", lambda a: np.zeros(2)),
        ("tables.log_counts", lambda a: a[:-1]),
        ("tables.name_ptr", lambda a: a + 1),
        ("tables.together.indices", lambda a: a + 10**6),
        ("tables.log_name_rows", lambda a: np.append(a, np.float32(1))),
        ("tables.log_name_rows", lambda a: a.astype(np.float64)),
        ("tables.names.indptr", lambda a: np.array([0, 3])),
    ],
)  # fmt: skip
def test_a_forged_second_look_is_refused(ranker, tmp_path, array, change):
    manifest, arrays = ranker.to_saved()
    arrays = {name: value.copy() for name, value in arrays.items()}
    arrays[array] = change(arrays[array])
    write_model(tmp_path / "model", manifest, arrays)
    with pytest.raises(FormatError):
        labelwood.load(tmp_path / "model")


def test_a_ranker_of_no_members_is_refused(ranker, tmp_path):
    manifest, arrays = ranker.to_saved()
    write_model(tmp_path / "model", {**manifest, "facts": {**manifest["facts"], "members": []}}, arrays)
    with pytest.raises(FormatError, match="at least one member"):
        labelwood.load(tmp_path / "model")


def test_a_saved_ranker_keeps_its_members_as_methods(planted, tmp_path):
    Ranker([LinearTree(arity=4)], n_jobs=1, n_boosted=1, folds=1).fit(planted.X, planted.names).save(tmp_path / "model")
    manifest, _ = read_model(tmp_path / "model")
    assert manifest["parameters"]["models"] == [{"method": "linear-tree", "arity": 4}]


def test_similar_rows_propose_labels(planted, planted_test, tmp_path):
    """They find labels that a poor member misses, are saved with the model, and can be left out."""
    poor = [{"method": "craft-forest", "n_trees": 1}]
    with_rows, without = (Ranker(poor, n_jobs=1, similar_rows=n).fit(planted.X, planted.names) for n in (50, 0))
    assert with_rows.score(planted_test.X, planted_test.names) > without.score(planted_test.X, planted_test.names)
    assert [model.describe()["similar_rows"] for model in (with_rows, without)] == [50, 0]
    with_rows.save(tmp_path / "model")
    one, two = (model.topk_ids(planted_test.X, 5) for model in (with_rows, labelwood.load(tmp_path / "model")))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.scores, two.scores)
    told = [clue.what for clue in with_rows.explain(planted_test.X[:1], k=1)[0].suggestions[0].clues]
    assert any(what.startswith("similar training rows") for what in told)


def named_topics(n_topics=40, n_rows=12):
    """Texts that name their topic and another one among words of no meaning, and the names of the topics."""
    random = np.random.default_rng(0)
    names = {f"t{topic}": f"subject{topic}" for topic in range(n_topics)}
    labels = [f"t{topic}" for topic in range(n_topics) for _ in range(n_rows)]
    texts = [
        " ".join(
            [names[label], f"subject{random.integers(n_topics)}", *(f"word{word}" for word in random.choice(200, 6))]
        )
        for label in labels
    ]
    return texts, [[label] for label in labels], names


def test_labels_are_hidden_while_the_second_look_learns():
    """Labels without any row are suggested by their names; only then does ``hidden`` make a difference."""
    texts, labels, names = named_topics()
    unseen = [row for row, (label,) in enumerate(labels) if label in {"t0", "t1", "t2"}]
    seen = sorted({*range(len(texts))} - {*unseen})
    trees = {}
    for rows in (seen, list(range(len(texts)))):
        for hidden in (0.0, 0.3):
            model = TextClassifier(Ranker(["linear-tree"], n_jobs=1, hidden=hidden), TfidfEncoder(n_jobs=1))
            model.fit([texts[row] for row in rows], [labels[row] for row in rows], label_texts=names)
            trees[len(rows), hidden] = model.classifier_.second_look_.trees
            first, _ = model.predict_topk([texts[row] for row in unseen], k=3)
            assert np.mean([labels[row][0] in own for row, own in zip(unseen, first.tolist(), strict=True)]) > 0.8
    all_seen, some_unseen = (
        trees[n, 0.0].values.tolist() == trees[n, 0.3].values.tolist() for n in (len(texts), len(seen))
    )
    assert all_seen
    assert not some_unseen


def test_labels_without_rows_are_suggested_more_often_if_they_weigh_less():
    texts, labels, names = named_topics()
    rows = [row for row, (label,) in enumerate(labels) if label not in {f"t{topic}" for topic in range(10)}]
    chances = []
    for unseen in (1.0, 0.0):
        model = TextClassifier(Ranker(["linear-tree"], n_jobs=1, hidden=0.3, unseen=unseen), TfidfEncoder(n_jobs=1))
        model.fit([texts[row] for row in rows], [labels[row] for row in rows], label_texts=names)
        found = model.predict_proba([texts[0]])
        chances.append(found[0, model.label_names.index["t0"]])
    assert chances[0] < chances[1]


@pytest.mark.parametrize("text_rows", [0, 1, 3])
def test_texts_of_labels_as_training_rows_of_the_members(text_rows):
    """Each text counts as so many rows; without any, the second look still suggests a label by its name."""
    texts, labels, names = named_topics()
    model = TextClassifier(Ranker(["linear-tree"], n_jobs=1, text_rows=text_rows), TfidfEncoder(n_jobs=1))
    model.fit(texts, labels, label_texts={**names, "zebra": "zebras"})
    own = model.classifier_.members_[0]
    top = own.topk_ids(model.encode(["zebras"]), 1)
    assert (own.label_names.named(top.labels[0].tolist()) == [model.label_names.index["zebra"]]) == (text_rows > 0)
    assert "zebra" in model.predict_topk(["zebras"], k=3)[0]


@pytest.mark.parametrize(
    ("n_rows", "given", "sizes"),
    [
        (19, {}, []),
        (100, {}, [20] * 5),
        (30_000, {}, [6000] * 2),
        (40_000, {}, [12_000]),
        (40_000, {"folds": 2}, [8000] * 2),
        (60_000, {}, [12_000]),
        (60_000, {"held_out": 0.1}, [18_000]),
    ],
)
def test_parts_that_are_held_out(n_rows, given, sizes):
    """One part if it has 10,000 rows, by a larger share if need be; else the parts take turns."""
    held_out = []

    class Watched(Ranker):
        def _held_out_part(self, X, Y, label_rows, out, run):
            held_out.append(out)

        def _train(self, X, Y, label_rows, run):
            pass

    Watched(["linear-tree"], n_jobs=1, **given).fit(sp.eye_array(n_rows).tocsr(), sp.csr_array(np.ones((n_rows, 1))))
    assert [len(part) for part in held_out] == sizes
    assert len({row for part in held_out for row in part.tolist()}) == sum(sizes)
