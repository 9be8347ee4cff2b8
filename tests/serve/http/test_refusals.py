"""Requests that the service refuses: without a right, malformed, too large, too many."""

from __future__ import annotations

import json
import re
import threading

import httpx
import pytest
from serving import example, online_model

READ, WRITE = "reading-token-0001", "writing-token-0001"


def test_roles(serving, model, tmp_path):
    (tmp_path / "tokens").write_text(f"read {READ}\nwrite {WRITE}\n")
    service = serving(model, "--tokens", tmp_path / "tokens")
    calls = [
        ("GET", "/model", None, "read"), ("GET", "/labels", None, "read"), ("GET", "/metrics", None, "read"),
        ("GET", "/openapi.json", None, "read"), ("GET", "/v1/projects", None, "read"),
        ("POST", "/suggest", {"text": "a"}, "read"), ("POST", "/suggest-batch", {"inputs": [{"text": "a"}]}, "read"),
        ("POST", "/explain", {"text": "tax"}, "read"),
        ("POST", "/learn", {"examples": [example(1)]}, "write"),
        ("PATCH", "/labels", {"action": "retire", "label": "law"}, "write"),
        ("GET", "/", None, "open"), ("GET", "/page.js", None, "open"), ("GET", "/healthz", None, "open"),
    ]  # fmt: skip
    for method, path, body, needed in calls:
        for token, role in ((None, "open"), ("wrong-token-00000", "open"), (READ, "read"), (WRITE, "write")):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            status = service.http.request(method, path, json=body, headers=headers).status_code
            if needed == "open" or role == "write" or (role, needed) == ("read", "read"):
                assert status == 200, (method, path, token)
            else:
                assert status == (401 if role == "open" else 403), (method, path, token)
    missing = service.http.get("/model")
    assert (missing.headers["www-authenticate"], "a token is required" in missing.text) == ("Bearer", True)
    wrong = service.http.get("/model", headers={"Authorization": "Bearer wrong-token-00000"})
    assert (wrong.headers["www-authenticate"], "the token is wrong" in wrong.text) == (
        'Bearer error="invalid_token"', True,
    )  # fmt: skip
    # nobody learns the form of a request without a token
    assert service.http.post("/learn", content=b"{").status_code == 401
    assert service.http.get("/model", auth=("annif", READ)).status_code == 200


def test_without_tokens_only_loopback(serving, model):
    with pytest.raises(RuntimeError, match="--host must be loopback"):
        serving(model, "--host", "0.0.0.0")
    service = serving(model)
    for host in ("evil.example", ""):
        assert service.http.get("/model", headers={"Host": host}).status_code == 403


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service with small limits that several tests use."""
    from serving import Running

    folder = tmp_path_factory.mktemp("shared")
    online_model().save(folder / "model")
    running = Running(folder / "model", "--max-body", 200_000, "--timeout", 1)
    yield running
    running.kill()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422), (b"", 422), (b"[]", 422), (b"null", 422), (b'"text"', 422), (b"{}", 422),
        (b'{"text": 1}', 422), (b'{"text": "a", "k": 0}', 422), (b'{"text": "a", "k": 1e99}', 422),
        (b'{"text": "a", "threshold": NaN}', 422), (b'{"text": "a", "unknown": 1}', 422),
        (b'{"features": {"1": 1}}', 422), (b'{"text": "a", "features": {"1": 1}}', 422),
        (b'{"text": "\\ud800"}', 422), (b'{"text": "a", "allowed": ["\\udfff"]}', 422), (b"\xff\xfe", 422),
        (b'{"text": "a", "allowed": [true]}', 422), (b"[" * 100_000, 400), (b'{"text": "\\u0000 a"}', 200),
    ],
)  # fmt: skip
def test_malformed_bodies(shared, body, status):
    answer = shared.http.post("/suggest", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert status == 200 or isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize(
    "examples",
    [[], [{"text": "a"}], [{"labels": ["a"]}], [{"features": {"1": 1}, "labels": ["a"]}],
     *([{"text": "a", "labels": labels}] for labels in (
         "law", [None], [""], [1.5], [True], ["\ud800"], ["b"] * 1001, [10**30]))],
)  # fmt: skip
def test_malformed_examples_are_not_logged(shared, examples):
    before = shared.metric("log_sequence")
    body = json.dumps({"examples": examples})
    answer = shared.http.post("/learn", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert shared.metric("log_sequence") == before


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("suggest", {"text": 5}, "text: must be a string or an object"),
        ("suggest", {"text": {"title": 5}}, "text: must be a string; text.title: must be a string"),
        ("suggest", {"text": "a", "k": 0, "threshold": 2}, "k: must be at least 1; threshold: must be at most 1"),
        ("suggest", {"txt": "a"}, "there is no field 'txt'; did you mean text?; the fields are text, features"),
        ("suggest", {}, "exactly one of text and features must be given"),
        ("suggest-batch", {"inputs": [{"text": "a"}, {"test": "b"}]}, "inputs.1: there is no field 'test'; did"),
        ("explain", {"text": "a", "missed": [None]}, "missed.0: must be a string or an integer"),
        ("explain", {"text": "a", "missed": [""]}, "missed.0: a label name must have 1 to 1000 characters; got 0"),
        ("learn", {"text": "a", "labels": ["x"]}, "there is no field 'text'; the fields are examples, label_texts"),
        ("learn", {"examples": [{"text": "a"}]}, "examples.0.labels: is missing"),
        ("learn", {"examples": [{"text": "a", "labels": "x"}]}, "examples.0.labels: must be a list"),
    ],
)
def test_what_is_wrong_is_said_in_words(shared, path, body, detail):
    answer = shared.http.post(f"/{path}", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(detail)
    assert not re.search(r"body|Input|Extra|function|0x|\[", answer.json()["detail"])


def test_bodies_that_are_not_json_are_told_so(shared):
    body = b'{"examples": []}'
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = shared.http.post("/learn", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 422
        assert answer.json()["detail"] == f"send Content-Type: application/json; got {kind}"
    assert shared.http.post("/learn", content=body).json()["detail"] == "send Content-Type: application/json; got none"
    headers = {"Content-Type": "application/json"}
    told = {
        b"{": "the body must be JSON: Expecting property name enclosed in double quotes at character 1",
        b"": "the body must be JSON; got an empty body",
    }
    for content, detail in told.items():
        assert shared.http.post("/suggest", content=content, headers=headers).json()["detail"] == detail


def test_oversized_bodies(shared):
    assert shared.http.post("/suggest", json={"text": "a" * 200_000}).status_code == 413

    def parts():
        for _ in range(30):
            yield b"x" * 10_000

    assert shared.http.post("/suggest", content=parts()).status_code == 413
    assert shared.http.post("/suggest-batch", json={"inputs": [{"text": "a"}] * 1001}).status_code == 422


def test_no_path_of_a_request_reaches_the_disk(shared):
    up = "..%2f..%2fetc%2fpasswd"
    for path in ("/../../etc/passwd", "/page/page.html", "/%2e%2e/%2e%2e/etc/passwd", f"/v1/projects/{up}"):
        assert shared.http.get(path).status_code == 404, path


def test_answers_forbid_scripts_and_frames(shared):
    headers = shared.http.get("/").headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["x-content-type-options"] == "nosniff"


def test_too_much_at_once(serving, model):
    service = serving(model, "--queue", 1)
    statuses: list[int] = []

    def ask(path, body):
        with httpx.Client(base_url=service.facts["url"], timeout=30) as client:
            statuses.extend(client.post(path, json=body).status_code for _ in range(10))

    many = {"examples": [example(number) for number in range(500)]}
    threads = [threading.Thread(target=ask, args=("/learn", many)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 429, 503}
    assert {200, 429} <= set(statuses)
    assert service.metric("examples_learned") == 500 * statuses.count(200)
    assert service.http.get("/readyz").json()["status"] == "ready"


def test_too_many_at_once(serving, still_model):
    service = serving(still_model, "--at-once", 2)
    batch = {"inputs": [{"text": "income tax " * 300}] * 1000}
    answers: list[httpx.Response] = []

    def ask():
        with httpx.Client(base_url=service.facts["url"], timeout=30) as client:
            answers.extend(client.post("/suggest-batch", json=batch) for _ in range(3))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert service.http.get("/healthz").status_code == 200
    assert {answer.status_code for answer in answers} == {200, 503}
    assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status_code == 503)
    assert service.http.post("/suggest", json={"text": "tax"}).status_code == 200
