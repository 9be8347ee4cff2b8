"""Names of a vocabulary in the answers of the service."""

import pytest
from animals import ANIMALS, EX

from labelwood import HashingEncoder, OnlineTree, TextClassifier
from labelwood.vocabulary import Vocabulary, save_vocabulary


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("animals")
    model = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**12, n_jobs=1))
    labels = [[EX + "cat"], [EX + "dog"], [EX + "fish"], [EX + "hound"]]
    texts = ["cats purr and meow", "dogs bark", "fish swim", "hounds hunt"]
    vocabulary = Vocabulary.of(ANIMALS)
    model.fit(texts * 5, labels * 5, vocabulary=vocabulary).save(folder / "model")
    return folder / "model"


def test_answers_have_names_in_the_language_of_the_request(serving, animals):
    http = serving(animals).http
    best = http.post("/suggest", json={"text": "cats purr", "k": 1}).json()["suggestions"][0]
    assert (best["label"], best["name"]) == (EX + "cat", "cat")
    asked = {"inputs": [{"text": "cats purr"}], "k": 1, "language": "fi"}
    assert http.post("/suggest-batch", json=asked).json()["results"][0]["suggestions"][0]["name"] == "kissa"
    told = http.post("/explain", json={"text": "cats purr", "k": 1, "language": "fi"}).json()
    assert told["names"][EX + "cat"] == "kissa"
    assert http.get("/model").json()["languages"] == ["en", "fi"]
    listed = http.get("/labels", params={"contains": "kis", "language": "en"}).json()
    assert [(one["label"], one["name"]) for one in listed["labels"]] == [(EX + "cat", "cat")]
    refused = http.post("/suggest", json={"text": "cats", "language": "sv"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "language must be one of en, fi; got 'sv'")


def test_deprecated_labels_are_learned_as_their_replacement(serving, animals):
    http = serving(animals, "--language", "fi").http
    assert http.get("/model").json()["language"] == "fi"
    done = http.post("/learn", json={"examples": [{"text": "a whelp", "labels": [EX + "whelp"]}]})
    assert done.json()["new_labels"] == 0
    best = http.post("/suggest", json={"text": "hounds hunt", "k": 1}).json()["suggestions"][0]
    assert (best["label"], best["name"]) == (EX + "dog", "dog")


def test_another_vocabulary_and_a_wrong_language(serving, animals, tmp_path):
    from labelwood.cli import main

    (tmp_path / "other.csv").write_text(f"uri,label_sv\n{EX}cat,katt\n")
    http = serving(animals, "--vocabulary", tmp_path / "other.csv").http
    assert http.post("/suggest", json={"text": "cats purr", "k": 1}).json()["suggestions"][0]["name"] == "katt"
    hits = http.post("/v1/projects/labelwood/suggest", data={"text": "cats purr", "limit": "1"}).json()["results"]
    assert (hits[0]["uri"], hits[0]["label"]) == (EX + "cat", "katt")
    save_vocabulary(Vocabulary.of(ANIMALS), tmp_path / "animals.csv")
    assert main(["serve", str(animals), "--port", "0", "--language", "sv", "--no-learn"]) == 1
