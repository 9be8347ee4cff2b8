"""The service as its users meet it: a process that answers requests."""

from __future__ import annotations

from serving import LABELS, TEXTS

from labelwood import HashingEncoder, OnlineTree, TextClassifier


def test_suggest_learn_explain(serving, model):
    service = serving(model)
    assert service.suggest("a dog", k=1)[0]["label"] == "pets"
    batch = service.http.post("/suggest-batch", json={"inputs": [{"text": text} for text in TEXTS], "k": 2}).json()
    for row, labels in zip(batch["results"], LABELS, strict=True):
        assert row["suggestions"][0]["label"] in labels
    assert service.suggest("zebra stripes", k=1, allowed=["zoo"]) == []
    taught = service.http.post("/learn", json={"examples": [{"text": "zebra stripes", "labels": ["zoo"]}] * 3})
    assert taught.json() == {"learned": 3, "new_labels": 1, "sequence": 2, "replayed": False}
    assert service.suggest("zebra stripes", k=1)[0]["label"] == "zoo"
    told = service.http.post("/explain", json={"text": "zebra stripes", "k": 1, "missed": ["pets"]}).json()
    path = told["suggestions"][0]["paths"][0]
    assert told["suggestions"][0]["label"] == "zoo"
    words = {word["name"]: word["amount"] for step in path["steps"] for word in step["contributions"]}
    assert words["zebra"] > 0
    assert told["missed"][0]["label"] == "pets"
    info = service.http.get("/model").json()
    assert (info["takes"], info["learns"], info["labels"]) == ("text", True, 5)
    assert info["service"]["examples_learned"] == 3
    assert info["service"]["suggest_p99_seconds"] > 0


def test_a_model_with_fields_takes_their_texts(serving, tmp_path):
    records = [{"title": text, "body": ""} for text in TEXTS]
    fielded = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_jobs=1), fields={"title": 2.0, "body": 1.0})
    fielded.partial_fit(records * 3, LABELS * 3).save(tmp_path / "fields")
    service = serving(tmp_path / "fields")
    assert service.http.get("/model").json()["fields"] == ["title", "body"]
    asked = {"text": {"title": "a dog", "body": "and a cat"}, "k": 1}
    assert service.http.post("/suggest", json=asked).json()["suggestions"][0]["label"] == "pets"
    assert service.suggest("a dog", k=1)[0]["label"] == "pets"
    told = service.http.post("/explain", json={"text": {"body": "a dog"}, "k": 1}).json()
    assert told["suggestions"][0]["label"] == "pets"
    taught = {"examples": [{"text": {"title": "zebra", "body": "stripes"}, "labels": ["zoo"]}] * 3}
    assert service.http.post("/learn", json=taught).json()["learned"] == 3
    assert service.suggest("zebra stripes", k=1)[0]["label"] == "zoo"
    wrong = service.http.post("/suggest", json={"text": {"heading": "a dog"}})
    assert (wrong.status_code, "none of the fields title, body" in wrong.json()["detail"]) == (422, True)
    refused = service.http.post("/learn", json={"examples": [{"text": {"heading": "x"}, "labels": ["zoo"]}]})
    assert refused.status_code == 422


def test_a_model_without_fields_refuses_them(serving, model):
    service = serving(model)
    for path, body in (
        ("/suggest", {"text": {"title": "a"}}),
        ("/learn", {"examples": [{"text": {"a": "b"}, "labels": ["c"]}]}),
    ):
        answer = service.http.post(path, json=body)
        assert (answer.status_code, "Records need fields" in str(answer.json())) == (422, True)


def test_labels_are_listed_and_changed_durably(serving, any_model):
    service = serving(any_model)
    listed = service.http.get("/labels").json()
    assert (listed["total"], [entry["label"] for entry in listed["labels"]]) == (4, ["court", "law", "money", "pets"])
    part = service.http.get("/labels", params={"contains": "O", "start": 1, "limit": 5}).json()
    assert (part["total"], part["labels"][0]["label"]) == (2, "money")
    changes = [
        {"action": "rename", "label": "pets", "to": "animals"},
        {"action": "merge", "label": "money", "to": "law"},
        {"action": "retire", "label": "court"},
    ]
    for change in changes:
        assert service.http.patch("/labels", json=change).status_code == 200
    again = service.http.patch("/labels", json=changes[0])
    assert (again.status_code, "there is no label 'pets'" in again.json()["detail"]) == (422, True)
    assert service.http.patch("/labels", json={"action": "rename", "label": "law"}).status_code == 422
    service.kill()
    service = serving(any_model)
    states = {entry["label"]: entry["state"] for entry in service.http.get("/labels").json()["labels"]}
    assert states == {"court": "retired", "law": "active", "money": "merged", "animals": "active"}
    assert {one["label"] for one in service.suggest("income tax, a dog in court")} == {"law", "animals"}


def test_a_retry_counts_once_even_after_a_crash(serving, model):
    service = serving(model)
    first = service.learn(1, 2, key="once")
    service.kill()
    service = serving(model)
    again = service.learn(1, 2, key="once")
    assert again.json() == {**first.json(), "replayed": True}
    other = service.learn(3, key="once")
    assert (other.status_code, "came before" in other.json()["detail"]) == (422, True)
    assert service.metric("examples_learned") == 2


def test_a_model_that_does_not_learn(serving, still_model):
    service = serving(still_model)
    assert service.facts["learns"] is False
    assert service.suggest("tax", k=1)[0]["label"] == "law"
    assert service.learn(1).status_code == 409
    assert service.http.patch("/labels", json={"action": "retire", "label": "law"}).status_code == 409
    assert service.http.get("/labels").json()["labels"][0] == {
        "label": "court", "state": "active", "support": 3, "age": None, "idle": None, "merged_into": None,
    }  # fmt: skip


def test_features_of_a_model_of_vectors(serving, tmp_path):
    OnlineTree(n_jobs=1).partial_fit([{0: 1.0}, {3: 1.0}], [["red"], ["blue"]]).save(tmp_path / "vectors")
    service = serving(tmp_path / "vectors")
    asked = {"features": {"3": 1.0, "900719925474099": 2.0}, "k": 1}
    assert service.http.post("/suggest", json=asked).json()["suggestions"][0]["label"] == "blue"
    wide = [{"features": {"900719925474099": 1.0}, "labels": ["far", 7]}]
    assert service.http.post("/learn", json={"examples": wide}).json()["new_labels"] == 2
    assert service.http.post("/suggest", json={**asked, "k": 3}).json()["suggestions"][0]["label"] in ("far", 7, "blue")
    assert service.http.post("/suggest", json={"features": {"-1": 1.0}}).status_code == 422
    assert service.http.post("/suggest", json={"features": {"1": 1e39}}).status_code == 422


def test_numbered_labels(serving, tmp_path):
    import numpy as np

    OnlineTree(n_jobs=1).fit(np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)).save(tmp_path / "numbers")
    service = serving(tmp_path / "numbers")
    assert service.http.post("/learn", json={"examples": [{"features": {"2": 1}, "labels": [4]}]}).status_code == 200
    for label in (-1, 10**9, "4"):
        answer = service.http.post("/learn", json={"examples": [{"features": {"2": 1}, "labels": [label]}]})
        assert (answer.status_code, "numbers from 0" in answer.json()["detail"]) == (422, True)
