"""The service as its users meet it: a process that answers requests."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time

import httpx
import pytest
from serving import LABELS, TEXTS, assert_same_state, example, online_model

from labelwood import HashingEncoder, LinearTree, OnlineTree, TextClassifier, load
from labelwood.cli import main
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.recovery import restore

READ, WRITE = "reading-token-0001", "writing-token-0001"


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


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service with small limits that several tests use."""
    from serving import Running

    folder = tmp_path_factory.mktemp("shared")
    online_model().save(folder / "model")
    running = Running(folder / "model", "--max-body", 200_000, "--timeout", 1)
    yield running
    running.kill()


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


def test_a_model_that_does_not_learn(serving, still_model):
    service = serving(still_model)
    assert service.facts["learns"] is False
    assert service.suggest("tax", k=1)[0]["label"] == "law"
    assert service.learn(1).status_code == 409
    assert service.http.patch("/labels", json={"action": "retire", "label": "law"}).status_code == 409
    assert service.http.get("/labels").json()["labels"][0] == {
        "label": "court", "state": "active", "support": 3, "age": None, "idle": None, "merged_into": None,
    }  # fmt: skip


def test_graceful_shutdown(serving, model, tmp_path):
    service = serving(model)
    answers: list[int] = []

    def teach():
        for number in range(200):
            try:
                answers.append(service.learn(number).status_code)
            except httpx.TransportError:
                return

    thread = threading.Thread(target=teach)
    thread.start()
    while len(answers) < 20:
        time.sleep(0.01)
    code, said = service.stop()
    thread.join()
    assert (code, said.count("\n")) == (0, 1), said
    done = answers.count(200)
    expected = load(model)
    for number in range(done):
        one = example(number)
        estimator_of(expected).partial_fit(expected.encode([one["text"]]), [one["labels"]])
    state = model.with_name("model.state")
    assert_same_state(restore(state).model, expected)
    out = tmp_path / "restored"
    assert main(["restore", str(state), "-o", str(out)]) == 0
    assert_same_state(load(out), expected)
    assert main(["restore", str(state), "--at", "1999-01-01", "-o", str(out)]) == 1


@pytest.mark.parametrize("learns", [True, False])
def test_hot_swap_without_a_failed_request(serving, model, learns):
    service = serving(model, *([] if learns else ["--no-learn"]))
    statuses: list[int] = []
    ended = threading.Event()

    def ask():
        with httpx.Client(base_url=service.facts["url"], timeout=30) as client:
            while not ended.is_set():
                statuses.append(client.post("/suggest", json={"text": "a dog"}).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    other = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**12, n_jobs=1)).fit(
        TEXTS, [["swapped"]] * len(TEXTS)
    )
    other.save(model)
    if learns:
        service.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 30
    while service.suggest("a dog", k=1)[0]["label"] != "swapped":
        assert time.monotonic() < deadline
    ended.set()
    thread.join()
    assert set(statuses) == {200}


def test_several_processes(serving, any_model):
    service = serving(any_model, "--workers", 2, "--snapshot-seconds", 0.2)
    with httpx.Client(base_url=service.facts["url"], timeout=30) as other:
        assert other.post("/suggest", json={"text": "a dog", "k": 1}).json()["suggestions"][0]["label"] == "pets"
        taught = other.post("/learn", json={"examples": [{"text": "zebra stripes", "labels": ["zoo"]}] * 5})
        assert taught.json()["learned"] == 5
        assert any(entry["label"] == "zoo" for entry in other.get("/labels").json()["labels"])
        assert other.post("/learn", json={"examples": []}).status_code == 422
        deadline = time.monotonic() + 30
        while other.post("/suggest", json={"text": "zebra"}).json()["suggestions"][0]["label"] != "zoo":
            assert time.monotonic() < deadline, "the readers did not take the snapshot up"
            time.sleep(0.1)
        while service.metric("examples_learned") != 5:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert other.get("/model").json()["learns"]
    code, said = service.stop()
    assert code == 0, said
    assert restore(any_model.with_name("model.state")).learned == 5


def test_drift_alarm(serving, model):
    service = serving(model, "--drift-window", 4, "--drift-alarm", 0.5)
    known = [{"text": text, "labels": labels} for text, labels in zip(TEXTS, LABELS, strict=True)]
    service.http.post("/learn", json={"examples": known})
    assert (service.metric("drift_alarm"), service.metric("drift_precision_at_1")) == (0, 1)
    new = [{"text": f"unheard {n}", "labels": [f"of {n}"]} for n in range(4)]
    service.http.post("/learn", json={"examples": new})
    assert (service.metric("drift_alarm"), service.metric("drift_new_label_rate")) == (1, 1)


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


def test_serving_needs_a_model(labelwood_error, tmp_path):
    assert "not found" in labelwood_error("serve", tmp_path / "none")
    TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, LABELS).save(tmp_path / "still")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "in use" in labelwood_error("serve", tmp_path / "still", "--port", port)


@pytest.fixture
def labelwood_error(capsys):
    def run(*words: object) -> str:
        assert main([str(word) for word in words]) == 1
        return capsys.readouterr().err

    return run
