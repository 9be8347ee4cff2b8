"""The short way answers as the long way does; a content type with a parameter sends a request along the long one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labelwood import OnlineTree
from labelwood.serve.os_tuning import _PAGE, _regions, use_large_pages

SHORT, LONG = "application/json", "application/json; charset=utf-8"


def both(service, path, body, **headers):
    """The answers of the two ways to the same bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [
        service.http.post(path, content=content, headers={"Content-Type": kind, **headers})
        for kind in (SHORT, LONG)
    ]


@pytest.fixture
def vectors(serving, tmp_path):
    rows = [{0: 1.0, 5: 0.5}, {3: 1.0, 5: 0.25}, {7: 2.0}]
    OnlineTree(n_jobs=1).partial_fit(rows * 4, [["rød"], ["blue", "sky"], ["sky"]] * 4).save(
        tmp_path / "model"
    )
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
    short, long = both(vectors, "/suggest", body)
    assert (short.status_code, short.json()) == (long.status_code, long.json())
    assert short.headers.keys() == long.headers.keys()
    assert short.headers["content-type"] == "application/json"


def test_learning_is_the_same(vectors):
    examples = {"examples": [{"features": {"9": 1.0, "2": 0.1}, "labels": ["new", "sky"]}]}
    short, long = both(vectors, "/learn", examples)
    assert short.json() == {"learned": 1, "new_labels": 1, "sequence": 2, "replayed": False}
    assert long.json() == {"learned": 1, "new_labels": 0, "sequence": 3, "replayed": False}
    once, again = both(vectors, "/learn", examples, **{"Idempotency-Key": "the-key"})
    assert again.json() == {**once.json(), "replayed": True}
    for key in ("a b", "x" * 201, ""):
        answers = both(vectors, "/learn", examples, **{"Idempotency-Key": key})
        assert [one.status_code for one in answers] == [422, 422], key
        assert answers[0].json() == answers[1].json()
    for wrong in (
        {"examples": []},
        {"examples": [{"text": "a", "labels": []}]},
        {"examples": [{"labels": []}]},
    ):
        short, long = both(vectors, "/learn", wrong)
        assert (short.status_code, short.json()) == (422, long.json())
    assert vectors.metric("examples_learned") == 3


def test_large_pages_change_nothing():
    held = np.arange(2**23)
    regions = list(_regions())
    assert any(start <= held.ctypes.data + 2 * _PAGE < start + size for start, size in regions)
    assert all(start % _PAGE == 0 and size % _PAGE == 0 for start, size in regions)
    use_large_pages()
    np.testing.assert_array_equal(held, np.arange(2**23))
