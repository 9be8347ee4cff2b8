"""A model of texts with vectors behind the service: a vector beside each text."""

from __future__ import annotations

import numpy as np
import pytest
from serving import LABELS, TEXTS

from labelwood import Embedded, HashingEncoder, LinearTree, OnlineTree, TextClassifier, load

WIDTH = 3


def vectors():
    found = np.full((len(TEXTS), WIDTH), 0.1, np.float32)
    for row, labels in enumerate(LABELS):
        found[row, 0 if "pets" in labels else 1] = 1
    return found


@pytest.fixture
def model(tmp_path):
    whole = TextClassifier(OnlineTree(n_jobs=1, random_state=0), HashingEncoder(n_features=256, n_jobs=1))
    for _ in range(3):
        whole.partial_fit(Embedded(TEXTS, vectors()), LABELS)
    whole.save(tmp_path / "model")
    return tmp_path / "model"


def test_suggest_learn_explain(serving, model):
    service = serving(model)
    assert service.http.get("/model").json()["vector"] == WIDTH
    pets = {"text": "xxx", "vector": [1, 0.1, 0.1]}
    assert service.http.post("/suggest", json={**pets, "k": 1}).json()["suggestions"][0]["label"] == "pets"
    inputs = [{"text": text, "vector": row} for text, row in zip(TEXTS, vectors().tolist(), strict=True)]
    batch = service.http.post("/suggest-batch", json={"inputs": inputs, "k": 1}).json()
    expected = load(model).predict_topk(Embedded(TEXTS, vectors()), k=1)[0].ravel().tolist()
    assert [row["suggestions"][0]["label"] for row in batch["results"]] == expected
    zebra = {"text": "zebra", "vector": [0.1, 0.1, 1]}
    taught = service.http.post("/learn", json={"examples": [{**zebra, "labels": ["zoo"]}] * 3}).json()
    assert (taught["learned"], taught["new_labels"]) == (3, 1)
    told = service.http.post("/explain", json={**zebra, "k": 1}).json()
    assert told["suggestions"][0]["label"] == "zoo"


def test_what_was_learned_survives_a_restart(serving, model):
    service = serving(model)
    example = {"text": "zebra", "vector": [0.1, 0.1, 1], "labels": ["zoo"]}
    assert service.http.post("/learn", json={"examples": [example] * 3}).status_code == 200
    asked = {"text": "zebra", "vector": [0.1, 0.1, 1], "k": 3}
    before = service.http.post("/suggest", json=asked).json()
    service.stop()
    assert serving(model).http.post("/suggest", json=asked).json() == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"text": "a"}, "takes a vector of 3 numbers beside each text; example 0 has none"),
        ({"text": "a", "vector": [1, 2]}, "takes a vector of 3 numbers beside each text; example 0 has one of 2"),
        ({"text": "a", "vector": []}, "vector must be a list of 1 to 100000 numbers"),
        ({"text": "a", "vector": [1, "2", 3]}, "number 1 must be at most 1e+30 in magnitude; got '2'"),
        ({"text": "a", "vector": [1, True, 3]}, "number 1 must be at most"),
        ({"text": "a", "vector": [1, 1e31, 3]}, "number 1 must be at most"),
        ({"text": "a", "vector": {"0": 1}}, "vector must be a list"),
        ({"features": {"0": 1}, "vector": [1, 2, 3]}, "a vector stands beside a text"),
    ],
)
def test_bad_vectors_are_refused(serving, model, asked, message):
    service = serving(model)
    for path, body in (
        ("/suggest", asked),
        ("/suggest-batch", {"inputs": [asked]}),
        ("/explain", asked),
        ("/learn", {"examples": [{**asked, "labels": ["pets"]}]}),
    ):
        answer = service.http.post(path, json=body)
        assert answer.status_code == 422, (path, answer.text)
        assert message in str(answer.json()["detail"]), path


def test_nan_and_infinity_are_refused(serving, model):
    service = serving(model)
    for number in ("NaN", "Infinity", "1e999"):
        body = f'{{"text": "a", "vector": [1, {number}, 3]}}'
        answer = service.http.post("/suggest", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422


def test_annif_clients_are_told_that_vectors_are_missing(serving, model):
    answer = serving(model).http.post("/v1/projects/labelwood/suggest", data={"text": "a dog"})
    assert answer.status_code == 422
    assert "takes a vector of 3 numbers beside each text" in answer.text


def test_models_without_vectors_refuse_them(serving, tmp_path):
    TextClassifier(LinearTree(n_jobs=1), HashingEncoder(n_features=64)).fit(TEXTS, LABELS).save(tmp_path / "plain")
    service = serving(tmp_path / "plain")
    assert service.http.get("/model").json()["vector"] == 0
    answer = service.http.post("/suggest", json={"text": "a", "vector": [1, 2, 3]})
    assert answer.status_code == 422
    assert "takes texts without vectors" in answer.json()["detail"]
