"""The fast path answers as the routes do. A content type with a parameter is not for the fast path."""

from __future__ import annotations

import json

import pytest

from labelwood import OnlineTree

FAST, ROUTED = "application/json", "application/json; charset=utf-8"


def both(service, path, body, **headers):
    """The answers of the fast path and of the route to the same bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [
        service.http.post(path, content=content, headers={"Content-Type": kind, **headers}) for kind in (FAST, ROUTED)
    ]


@pytest.fixture
def vectors(serving, tmp_path):
    rows = [{0: 1.0, 5: 0.5}, {3: 1.0, 5: 0.25}, {7: 2.0}]
    OnlineTree(n_jobs=1).partial_fit(rows * 4, [["rød"], ["blue", "sky"], ["sky"]] * 4).save(tmp_path / "model")
    return serving(tmp_path / "model")


@pytest.mark.parametrize(
    "body",
    [
        {"features": {"5": 1.0, "0": 0.5}, "k": 3},
        {"features": {"5": "1.0", "00": True}, "k": "2", "threshold": 0.2},
        {"features": {}},
        {"features": {"3": 1.0}, "allowed": ["sky", "nothing"]},
        {"features": {"999999999999": 1.0}, "k": 1000},
        b'{"features": {"1": 1.0, "1": 2.0, "3": 1e-30}, "k": 1, "k": 2}',
        json.dumps({"features": {"3": 1.0}}).encode("utf-16"),
        {"features": {"1": 1.0}, "k": 0},
        {"features": {"-1": 1.0}},
        {"features": {"1": 1e31}},
        {"text": "a text"},
        {"text": "\ud800"},
        b'{"features": {"1": NaN}}',
        b"{",
        b"",
    ],
)
def test_suggestions_and_refusals_are_the_same(vectors, body):
    fast, routed = both(vectors, "/suggest", body)
    assert (fast.status_code, fast.json()) == (routed.status_code, routed.json())
    assert fast.headers.keys() == routed.headers.keys()
    assert fast.headers["content-type"] == "application/json"


def test_learning_is_the_same(vectors):
    examples = {"examples": [{"features": {"9": 1.0, "2": 0.1}, "labels": ["new", "sky"]}]}
    fast, routed = both(vectors, "/learn", examples)
    assert fast.json() == {"learned": 1, "new_labels": 1, "sequence": 2, "replayed": False}
    assert routed.json() == {"learned": 1, "new_labels": 0, "sequence": 3, "replayed": False}
    once, again = both(vectors, "/learn", examples, **{"Idempotency-Key": "the-key"})
    assert again.json() == {**once.json(), "replayed": True}
    for key in ("a b", "x" * 201, ""):
        answers = both(vectors, "/learn", examples, **{"Idempotency-Key": key})
        assert [one.status_code for one in answers] == [422, 422], key
        assert answers[0].json() == answers[1].json()
    for wrong in ({"examples": []}, {"examples": [{"text": "a", "labels": []}]}, {"examples": [{"labels": []}]}):
        fast, routed = both(vectors, "/learn", wrong)
        assert (fast.status_code, fast.json()) == (422, routed.json())
    assert vectors.metric("examples_learned") == 3
