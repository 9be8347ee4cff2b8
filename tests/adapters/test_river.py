"""OnlineTree as a river classifier."""

import copy
import functools
import pickle

import numpy as np
import pytest

from labelwood import LabelwoodError, LivingTree, OnlineTree

river = pytest.importorskip("river", reason="river is not installed; use make test-adapters")

from river import checks, compose, evaluate, feature_extraction, metrics, preprocessing, stream  # noqa: E402

from labelwood.adapters.river import OnlineTreeClassifier  # noqa: E402


def animals(n_rows=300, seed=0):
    """Examples whose labels follow from their features; two labels and their features appear half way."""
    random = np.random.default_rng(seed)
    for row in range(n_rows):
        chosen = random.choice(3 if row < n_rows // 2 else 5, size=2, replace=False).tolist()
        x = {f"sign {label}": 1.0 for label in chosen} | {f"noise {random.integers(9)}": 0.2}
        yield x, {f"label {label}": True for label in chosen}


def moods(n_rows, seed=0):
    """Examples like those of river's Music: every row has 20 features and the truth of six labels."""
    random = np.random.default_rng(seed)
    plane = random.normal(size=(20, 6))
    for _ in range(n_rows):
        values = random.normal(size=20)
        yield (
            {f"sound {j}": float(value) for j, value in enumerate(values)},
            {f"mood {j}": bool(side > 0) for j, side in enumerate(values @ plane)},
        )


MODELS = {
    "defaults": OnlineTreeClassifier(),
    "parameters": OnlineTreeClassifier(OnlineTree(policy="complete", n_jobs=1), k=3, threshold=0.4),
}


@pytest.mark.parametrize("name", MODELS)
def test_rivers_own_checks(name):
    """Run all checks. Those that need data get generated data, because river would download its own."""
    model, done = MODELS[name], set()
    assert not model._unit_test_skips()
    for check in checks.yield_checks(model):
        if isinstance(check, functools.partial):
            assert list(check.keywords) == ["dataset"]
            n_rows = 500 if check.__name__ == "check_bounded_memory_growth" else 50
            check.func(model.clone(), dataset=list(moods(n_rows)))
        else:
            check(model.clone())
        done.add(check.__name__)
    assert {"check_pickling", "check_emerging_features", "check_bounded_memory_growth"} <= done
    assert len(done) >= 24


def test_progressive_validation_of_every_label():
    scaled = preprocessing.StandardScaler() | OnlineTreeClassifier(OnlineTree(n_jobs=1))
    metric = metrics.multioutput.MicroAverage(metrics.F1())
    assert evaluate.progressive_val_score(moods(600), scaled, metric).get() > 0.7


def test_progressive_validation_when_labels_keep_appearing():
    metric = metrics.multioutput.MicroAverage(metrics.Recall())
    found = evaluate.progressive_val_score(animals(), OnlineTreeClassifier(k=3), metric)
    assert found.get() > 0.8


def test_learn_one_and_learn_many_agree():
    rows, targets = zip(*animals(), strict=True)
    one, many, sets = OnlineTreeClassifier(), OnlineTreeClassifier(), OnlineTreeClassifier()
    for x, y in zip(rows, targets, strict=True):
        one.learn_one(x, y)
        sets.learn_one(x, set(y))
    many.learn_many(rows[:100], targets[:100])
    many.learn_many(rows[100:], targets[100:])
    for x in rows[:20]:
        expected = one.predict_proba_one(x)
        assert many.predict_proba_one(x).keys() == expected.keys() == sets.predict_proba_one(x).keys()
        for label, chances in many.predict_proba_one(x).items():
            assert chances[True] == pytest.approx(expected[label][True], abs=1e-6)
            assert chances[True] + chances[False] == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_learn_many_from_frames(library):
    frames = pytest.importorskip(library, reason=f"{library} is not installed; use make test-adapters")
    rows = list(moods(60))
    X, y = frames.DataFrame([x for x, _ in rows]), frames.DataFrame([y for _, y in rows])
    many, one = OnlineTreeClassifier(), OnlineTreeClassifier()
    many.learn_many(X, y)
    one.learn_many([x for x, _ in rows], [y for _, y in rows])
    assert many.predict_one(rows[0][0]) == one.predict_one(rows[0][0])
    assert set(many.predict_one(rows[0][0])) == set(rows[0][1])


def test_a_pipeline_of_texts():
    texts = [("the cat sleeps", {"pets"}), ("a tax on income", {"law", "money"})] * 20
    model = compose.Pipeline(feature_extraction.BagOfWords(lowercase=True), OnlineTreeClassifier(k=2))
    for text, labels in texts:
        model.learn_one(text, dict.fromkeys(labels, True))
    assert model.predict_one("my cat")["pets"]
    assert not model.predict_one("my cat")["money"]
    assert not model.predict_one("my cat")["never seen"]


def test_streams_of_scikit_learn_data():
    X, Y = np.eye(4), np.array([[1, 0], [0, 1], [1, 1], [1, 0]])
    model = OnlineTreeClassifier()
    for x, y in stream.iter_array(X, Y, feature_names=list("abcd"), target_names=["s", "t"]):
        model.learn_one(x, y)
    assert set(model.predict_one({"a": 1})) == {"s", "t"}


def test_a_living_tree():
    living = OnlineTreeClassifier(LivingTree(n_jobs=1, refit_rows=20), k=2)
    for number in range(60):
        living.learn_one({f"word {number % 3}": 1.0}, {f"label {number % 3}"})
    assert next(iter(living.predict_one({"word 1": 1.0}))) == "label 1"


def test_copies_learn_independently():
    examples = list(animals())
    model = OnlineTreeClassifier(k=3)
    for x, y in examples[:200]:
        model.learn_one(x, y)
    before = model.predict_proba_one(examples[0][0])
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin.predict_proba_one(examples[0][0]) == before
        for x, y in examples[200:]:
            twin.learn_one(x, y)
        assert model.predict_proba_one(examples[0][0]) == before
    assert model.clone().predict_one(examples[0][0]) == {}


def test_malformed_examples_are_refused():
    model = OnlineTreeClassifier()
    with pytest.raises(LabelwoodError, match=r"y must be a dict from label to truth, or the labels.*got 'spam'"):
        model.learn_one({"a": 1}, "spam")
    with pytest.raises(LabelwoodError, match="feature values must be numbers"):
        model.learn_one({"a": "red"}, {"spam": True})
    assert model.predict_one({"a": 1}) == {}


def test_examples_without_a_true_label():
    model = OnlineTreeClassifier()
    model.learn_one({"a": 1}, {})
    assert model.predict_one({"a": 1}) == {}
    model.learn_one({"a": 1}, {"spam": False})
    assert model.predict_proba_one({"a": 1}) == {"spam": {True: 0.0, False: 1.0}}
