"""Texts in, label names out: the encoder and the method in one model."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import labelwood
from labelwood import (
    FormatError,
    HashingEncoder,
    LabelwoodError,
    LinearTree,
    OneVsRest,
    OnlineForest,
    OnlineTree,
    TextClassifier,
    TfidfEncoder,
)
from labelwood.methods import METHODS
from labelwood.storage.model_directory import read_model, write_model

WORDS = {"pets": "cat dog hamster", "law": "court tax judge", "sea": "ship wave harbour", "sport": "ball goal team"}


def corpus(n_texts: int = 80) -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(5)
    texts, labels = [], []
    for _ in range(n_texts):
        chosen = rng.choice(list(WORDS), size=rng.integers(1, 3), replace=False).tolist()
        words = [word for label in chosen for word in WORDS[label].split()] + ["the", "and"]
        texts.append(" ".join(rng.permutation(words).tolist()))
        labels.append(sorted(chosen))
    return texts, labels


TEXTS, LABELS = corpus()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("encoder", [TfidfEncoder(ngram_range=(1, 2), min_df=2), HashingEncoder(n_features=512)])
def test_every_method_takes_texts_and_survives_saving(tmp_path, name, encoder):
    model = TextClassifier(METHODS[name](random_state=0, n_jobs=1), encoder).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.6  # a guess is right in less than half of the texts
    model.save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model")
    assert isinstance(again, TextClassifier)
    for before, after in zip(model.predict_topk(TEXTS, k=3), again.predict_topk(TEXTS, k=3), strict=True):
        assert np.array_equal(before, after)
    assert again.encoder_.get_params() == encoder.get_params()
    assert again.classes_.tolist() == sorted(WORDS)
    assert "encode" in again.classifier_.fit_seconds_


def test_it_is_the_classifier_on_the_encoder():
    model = TextClassifier(LinearTree(n_jobs=1), TfidfEncoder(n_jobs=1)).fit(TEXTS, LABELS)
    encoder = TfidfEncoder(n_jobs=1)
    alone = LinearTree(n_jobs=1).fit(encoder.fit_transform(TEXTS), LABELS)
    vectors = encoder.transform(TEXTS)
    assert np.array_equal(model.predict_topk(TEXTS)[1], alone.predict_topk(vectors)[1])
    assert (model.predict(TEXTS) != alone.predict(vectors)).nnz == 0
    assert (model.predict_proba(TEXTS, k=2) != alone.predict_proba(vectors, k=2)).nnz == 0


def test_it_is_an_estimator():
    model = TextClassifier(OneVsRest(n_jobs=1), TfidfEncoder(n_jobs=1))
    with pytest.raises(NotFittedError, match="TextClassifier: not fitted yet"):
        model.predict_topk(TEXTS)
    assert clone(model).set_params(classifier__C=2.0, encoder__min_df=2).get_params()["encoder__min_df"] == 2
    search = GridSearchCV(model, {"encoder__sublinear_tf": [True, False]}, cv=KFold(2))
    assert search.fit(TEXTS, LABELS).best_score_ > 0.9
    assert not hasattr(model, "classifier_")
    defaults = TextClassifier().fit(TEXTS, LABELS)
    assert isinstance(defaults.classifier_, LinearTree)
    assert isinstance(defaults.encoder_, TfidfEncoder)
    assert defaults.classifier is None
    assert defaults.predict_topk(["a cat and a dog"], k=1)[0].tolist() == [["pets"]]


def test_the_parameters_of_default_parts():
    model = TextClassifier()
    shown = model.get_params()
    assert shown["encoder"] is shown["classifier"] is None
    assert {name: shown[name] for name in shown if "__" in name} == {
        **{f"encoder__{name}": value for name, value in TfidfEncoder().get_params().items()},
        **{f"classifier__{name}": value for name, value in LinearTree().get_params().items()},
    }
    assert model.get_params(deep=False) == {"classifier": None, "encoder": None, "fields": None}
    assert vars(model) == {"classifier": None, "encoder": None, "fields": None}  # looking changes nothing
    changed = clone(model).set_params(encoder__min_df=2, encoder__ngram_range=(1, 2))
    assert changed.encoder.get_params() == TfidfEncoder(min_df=2, ngram_range=(1, 2)).get_params()
    assert changed.classifier is None
    assert clone(changed).get_params()["encoder__min_df"] == 2
    assert changed.set_params(encoder=None, encoder__norm="l1").encoder.get_params()["min_df"] == 1
    assert changed.set_params(classifier__C=2.0, classifier=OneVsRest(), encoder=None).encoder is None
    assert changed.classifier.get_params() == OneVsRest(C=2.0).get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'ngrams' for estimator TfidfEncoder"):
        model.set_params(encoder__ngrams=2)
    with pytest.raises(ValueError, match="Invalid parameter 'method'"):
        model.set_params(method=2)


def test_a_search_over_default_parts():
    grid = {"encoder__ngram_range": [(1, 1), (1, 2)], "classifier__n_trees": [1, 2]}
    search = GridSearchCV(TextClassifier(), grid, cv=KFold(2), error_score="raise").fit(TEXTS, LABELS)
    assert search.best_score_ > 0.9
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_
    assert best.encoder_.ngram_range == search.best_params_["encoder__ngram_range"]
    assert best.classifier_.n_trees == search.best_params_["classifier__n_trees"]


@pytest.mark.parametrize("encoder", [TfidfVectorizer(sublinear_tf=True), HashingVectorizer(n_features=512)], ids=repr)
def test_a_vectorizer_of_scikit_learn(tmp_path, encoder):
    model = TextClassifier(LinearTree(n_jobs=1), encoder).fit(TEXTS, LABELS)
    assert type(model.encoder_) is type(encoder)
    assert model.encoder_ is not encoder
    ours = {TfidfVectorizer: TfidfEncoder(), HashingVectorizer: HashingEncoder(n_features=512)}[type(encoder)]
    twin = TextClassifier(LinearTree(n_jobs=1), ours).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model")
    assert again.encoder_.get_params() == ours.get_params()
    for other in (twin, again):
        for left, right in zip(model.predict_topk(TEXTS), other.predict_topk(TEXTS), strict=True):
            np.testing.assert_array_equal(left, right)
        assert model.explain(TEXTS[:2]) == other.explain(TEXTS[:2])
    model.set_threads(1)
    assert model.set_params(encoder__norm="l1").encoder.norm == "l1"


def test_a_pipeline_of_transformers(tmp_path):
    svd = make_pipeline(TfidfVectorizer(), TruncatedSVD(8, random_state=0))
    model = TextClassifier(OneVsRest(n_jobs=1), svd)
    search = GridSearchCV(model, {"encoder__truncatedsvd__n_components": [4, 8]}, cv=KFold(2), error_score="raise")
    assert search.fit(TEXTS, LABELS).best_score_ > 0.9
    model.fit(TEXTS, LABELS)
    for left, right in zip(
        model.predict_topk(TEXTS), pickle.loads(pickle.dumps(model)).predict_topk(TEXTS), strict=True
    ):
        np.testing.assert_array_equal(left, right)
    step = model.explain(TEXTS[:1])[0].suggestions[0].paths[0].steps[0]
    assert step.contributions[0].name.startswith("truncatedsvd")
    with pytest.raises(LabelwoodError, match="with this Pipeline cannot be saved without pickle") as caught:
        model.save(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()


def test_parts_of_the_wrong_kind_are_refused():
    with pytest.raises(LabelwoodError, match="classifier must be a method of this library, such as LinearTree"):
        TextClassifier(TfidfVectorizer()).fit(TEXTS, LABELS)
    with pytest.raises(LabelwoodError, match="encoder must be a TfidfEncoder"):
        TextClassifier(encoder="tfidf").fit(TEXTS, LABELS)


@pytest.mark.parametrize("method", [OnlineTree, OnlineForest])
def test_texts_that_arrive_in_batches(method, tmp_path):
    model, whole = (TextClassifier(method(n_jobs=1), HashingEncoder(n_features=512)) for _ in range(2))
    for start in range(0, len(TEXTS), 16):
        model.partial_fit(TEXTS[start : start + 16], LABELS[start : start + 16])
    assert model.can_learn
    whole.partial_fit(TEXTS, LABELS)
    for left, right in zip(model.predict_topk(TEXTS), whole.predict_topk(TEXTS), strict=True):
        np.testing.assert_array_equal(left, right)
    model.partial_fit(["a brand new topic"], [["new"]])
    assert "new" in model.classes_.tolist()
    assert model.classifier is not model.classifier_
    model.save(tmp_path / "model")
    assert labelwood.load(tmp_path / "model").partial_fit(TEXTS[:3], LABELS[:3]).classifier_.n_seen_ == len(TEXTS) + 4


def test_the_first_batch_gives_the_vocabulary():
    model = TextClassifier(OnlineTree(n_jobs=1)).partial_fit(["cats purr"], [["pets"]])
    model.partial_fit(["ships sail"], [["sea"]])
    assert sorted(model.encoder_.vocabulary_) == ["cats", "purr"]


def test_a_batch_that_is_refused_leaves_the_model_as_it_was():
    model = TextClassifier(OnlineTree(n_jobs=1))
    with pytest.raises(LabelwoodError, match="the same number of rows"):
        model.partial_fit(TEXTS, LABELS[:-1])
    assert vars(model).keys() == {"classifier", "encoder", "fields"}
    with pytest.raises(
        LabelwoodError, match="TextClassifier: LinearTree does not learn from a stream; for partial_fit"
    ):
        TextClassifier().partial_fit(TEXTS, LABELS)


def test_each_class_refuses_the_other(tmp_path):
    TextClassifier().fit(TEXTS, LABELS).save(tmp_path / "texts")
    LinearTree().fit(np.eye(3), [["a"], ["b"], ["a"]]).save(tmp_path / "vectors")
    assert isinstance(TextClassifier.load(tmp_path / "texts"), TextClassifier)
    with pytest.raises(FormatError, match="holds a TextClassifier, not a LinearTree; use"):
        LinearTree.load(tmp_path / "texts")
    with pytest.raises(FormatError, match="holds a LinearTree without an encoder"):
        TextClassifier.load(tmp_path / "vectors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda manifest, arrays: manifest["encoder"].update(name="bert"), "unknown encoder 'bert'"),
        (lambda manifest, arrays: manifest["encoder"].pop("parameters"), "lacks 'parameters'"),
        (lambda manifest, arrays: manifest["encoder"]["parameters"].update(nonsense=1), "nonsense"),
        (lambda manifest, arrays: manifest["encoder"]["parameters"].update(ngram_range=[3, 1]), "ngram_range"),
        (lambda manifest, arrays: arrays.pop("encoder.idf"), "lacks 'idf'"),
        (
            lambda manifest, arrays: manifest["encoder"].update(name="hashing", parameters={"n_features": 9}),
            "the encoder has 9 columns",
        ),
    ],
)
def test_a_damaged_encoder_is_one_sentence(tmp_path, damage, message):
    TextClassifier().fit(TEXTS, LABELS).save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    manifest, arrays = json.loads(json.dumps(manifest)), dict(arrays)
    damage(manifest, arrays)
    own = {
        key: manifest[key] for key in manifest if key not in ("format", "format_version", "library_version", "files")
    }
    write_model(tmp_path / "damaged", own, arrays)
    with pytest.raises(FormatError, match=message) as caught:
        labelwood.load(tmp_path / "damaged")
    assert str(caught.value).startswith(str(tmp_path / "damaged"))
