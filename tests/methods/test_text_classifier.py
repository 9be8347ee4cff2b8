"""Texts in, label names out: the encoder and the method in one model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

import labelwood
from labelwood import FormatError, HashingEncoder, LinearTree, OneVsRest, TextClassifier, TfidfEncoder
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
