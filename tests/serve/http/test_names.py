"""Names of a vocabulary in the answers of the service."""

import pytest
from animals import ANIMALS, EX

from labelwood import HashingEncoder, OnlineTree, Ranker, TextClassifier, TfidfEncoder
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


def test_texts_of_labels_are_learned(serving, animals):
    """A label becomes known by its name alone; what is no text of a label is refused, and nothing is learned."""
    http = serving(animals).http
    before = http.get("/model").json()["service"]["examples_learned"]
    zebra = {"label": EX + "zebra", "texts": ["zebra", "striped horses"]}
    done = http.post("/learn", json={"label_texts": [zebra]}).json()
    assert (done["learned"], done["new_labels"]) == (2, 1)
    best = http.post("/suggest", json={"text": "a herd of striped horses", "k": 1}).json()["suggestions"][0]
    assert best["label"] == EX + "zebra"
    both = {"examples": [{"text": "cats meow", "labels": [EX + "cat"]}], "label_texts": [zebra]}
    assert http.post("/learn", json=both).json()["learned"] == 3
    for wrong in (
        {},
        {"examples": []},
        {"label_texts": [{"label": "a", "texts": []}]},
        {"label_texts": [{"label": "a", "texts": "striped"}]},
        {"label_texts": [{"label": "", "texts": ["striped"]}]},
        {"label_texts": {"a": ["striped"]}},
    ):
        assert http.post("/learn", json=wrong).status_code == 422, wrong
    assert http.get("/model").json()["service"]["examples_learned"] == before + 5


def test_a_model_of_vectors_has_no_texts_of_labels(serving, tmp_path):
    OnlineTree(n_jobs=1).partial_fit([{0: 1.0}, {3: 1.0}], [["red"], ["blue"]]).save(tmp_path / "model")
    refused = serving(tmp_path / "model").http.post("/learn", json={"label_texts": [{"label": "red", "texts": ["x"]}]})
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "this model takes features, not text; example 0 has no features",
    )


def test_a_ranker_with_label_texts_is_served(serving, tmp_path):
    texts = ["cats purr and meow", "dogs bark loudly", "fish swim in water"] * 8
    model = TextClassifier(Ranker(["linear-tree"], n_jobs=1), TfidfEncoder(n_jobs=1))
    model.fit(texts, [["cat"], ["dog"], ["fish"]] * 8, label_texts={"zebra": ["zebras", "striped horses"]})
    model.save(tmp_path / "model")
    http = serving(tmp_path / "model").http
    found = http.post("/suggest", json={"text": "striped horses", "k": 4}).json()["suggestions"]
    assert [one["label"] for one in found] == model.predict_topk(["striped horses"], 4)[0].tolist()[0]
    assert "zebra" in [one["label"] for one in found]
    refused = http.post("/learn", json={"label_texts": [{"label": "dog", "texts": ["dogs"]}]})
    assert refused.status_code == 409
