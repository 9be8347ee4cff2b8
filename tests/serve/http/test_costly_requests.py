"""Requests made to be expensive: they cost what they must, beside the event loop, and end when nobody waits."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest
import scipy.sparse as sp
from pydantic import TypeAdapter, ValidationError

from labelwood import Blend, CraftForest, LinearTree, OnlineTree
from labelwood.errors import LabelwoodError
from labelwood.explain import Explanation
from labelwood.serve.http.annif_api import annif_routes
from labelwood.serve.http.answers import of_explanation, of_labels, of_suggestions
from labelwood.serve.http.app import create_app
from labelwood.serve.http.limits import Limits
from labelwood.serve.messages import LabelList, LearnRequest, SuggestBatchRequest, SuggestRequest
from labelwood.serve.service import Service, suggest
from labelwood.serve.state.followed_model import FollowedModel
from labelwood.serve.state.records import rows_of
from labelwood.serve.telemetry import Metrics

N_LABELS = 60_000
MANY = 1_000_000


@pytest.fixture(scope="module")
def vast() -> OnlineTree:
    """A model of many labels, of which a row tells little."""
    columns = np.arange(N_LABELS)
    X = sp.csr_array((np.ones(N_LABELS), (columns, columns % 50)), shape=(N_LABELS, 50), dtype=np.float32)
    return OnlineTree(n_jobs=1, policy="random", arity=8).partial_fit(X, [[f"label {n}"] for n in columns])


@pytest.fixture(scope="module")
def vast_path(vast, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("vast") / "model"
    vast.save(path)
    return path


@pytest.fixture
def vast_service(vast_path):
    followed = FollowedModel(lambda: vast_path, n_jobs=1)
    yield Service(followed, Metrics())
    followed.close()


async def longest_step(work) -> tuple[float, float]:
    """The longest step of the event loop during some work, and the whole work, in CPU seconds.

    CPU seconds of the loop's own thread do not grow when other processes take the machine.
    """
    steps = []

    async def tick():
        while True:
            started = time.thread_time()
            await asyncio.sleep(0)
            steps.append(time.thread_time() - started)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    steps.clear()
    started = time.process_time()
    await work
    took = time.process_time() - started
    await asyncio.sleep(0)
    ticking.cancel()
    return max(steps), took


def test_allowed_labels_cost_their_paths(vast):
    row = rows_of(vast, [{"features": {"1": 1.0}}])
    started = time.process_time()
    assert suggest(vast, row, k=10, allowed=["nope"]) == [[]]
    (found,) = suggest(vast, row, k=10, allowed=[f"label {n}" for n in range(0, N_LABELS, 1000)])
    assert len(found) == 10
    assert time.process_time() - started < 0.5


def test_a_long_list_is_not_quadratic(vast):
    row = rows_of(vast, [{"features": {"1": 1.0}}])
    started = time.process_time()
    assert len(vast.topk_ids(row, N_LABELS).labels[0]) == N_LABELS
    assert time.process_time() - started < 0.5


def test_allowed_labels_are_searched_beside_the_event_loop(vast_service):
    allowed = [f"label {n}" for n in range(0, N_LABELS, 6)]
    request = SuggestRequest(features={1: 1.0}, k=1000, allowed=allowed)
    step, took = asyncio.run(longest_step(vast_service.suggest(request)))
    assert step < max(0.5 * took, 0.02)


def test_a_request_that_nobody_waits_for_ends(vast_service):
    inputs = [{"features": {str(n % 50): 1.0}} for n in range(1000)]
    allowed = [f"label {n}" for n in range(0, N_LABELS, 6)]
    batch = SuggestBatchRequest(inputs=inputs, k=1000, allowed=allowed)

    async def give_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await vast_service.suggest_batch(batch)

    async def run():
        await give_up()
        await asyncio.sleep(1)  # what is left of the work ends here
        ended = time.process_time()
        await asyncio.sleep(1)
        return time.process_time() - ended

    assert asyncio.run(run()) < 0.1


def steps_of_request(service: Service, path: str, body: object) -> tuple[float, float, httpx.Response]:
    answers, transport = [], httpx.ASGITransport(create_app(service, limits=Limits(seconds=300)))

    async def work():
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answers.append(await client.post(path, json=body))

    step, took = asyncio.run(longest_step(work()))
    assert answers[0].status_code == 200, answers[0].text
    return step, took, answers[0]


def test_a_long_batch_is_written_beside_the_event_loop(vast_service):
    """A small request for a long answer must not keep others waiting while the answer is written."""
    body = {"inputs": [{"features": {"1": 1.0}}] * 100, "k": 1000}
    step, took, answer = steps_of_request(vast_service, "/suggest-batch", body)
    assert [len(row["suggestions"]) for row in answer.json()["results"]] == [1000] * 100
    assert step < max(0.1 * took, 0.02), (step, took)


def test_a_long_explanation_is_written_beside_the_event_loop(tmp_path):
    rows = np.ones((200, 500), np.float32)
    OnlineTree(n_jobs=1, policy="random").partial_fit(rows, [[f"label {n}"] for n in range(200)]).save(tmp_path / "m")
    followed = FollowedModel(lambda: tmp_path / "m", n_jobs=1)
    try:
        body = {"features": {str(n): 1.0 for n in range(500)}, "k": 100, "n_features": 500}
        step, took, answer = steps_of_request(Service(followed, Metrics()), "/explain", body)
    finally:
        followed.close()
    assert len(answer.content) > 10_000_000
    assert step < max(0.03 * took, 0.02), (step, took)


@pytest.mark.parametrize("method", [OnlineTree, Blend, CraftForest])
def test_pieces_make_the_whole_explanation(method):
    """The pieces of an answer, put together, are what pydantic writes of the whole."""
    X, Y = np.eye(6, dtype=np.float32), [["a"], ["b"], ["c"], ["a"], ["b"], ["c", "d"]]
    found = method(n_jobs=1).fit(X, Y).explain(X[:1], 3, missed=["d"])[0]
    assert json.loads(b"".join(of_explanation(found))) == TypeAdapter(Explanation).dump_python(found, mode="json")


@pytest.mark.parametrize("what", ["features", "vector", "text", "allowed", "texts", "labels"])
def test_a_wrong_request_has_few_errors(what):
    """Errors cost a hundred times what they complain about."""
    many: dict[str, dict[str, object]] = {
        "features": {"features": {f"x{n}": [] for n in range(50_000)}},
        "vector": {"text": "a", "vector": [[]] * 50_000},
        "text": {"text": {str(n): 1 for n in range(50_000)}},
        "allowed": {"text": "a", "allowed": [{}] * 50_000},
        "texts": {"label_texts": [{"label": "a", "texts": [{}] * 50_000}] * 50},
        "labels": {"examples": [{"text": "a", "labels": [{}] * 50_000}] * 50},
    }
    kind = LearnRequest if what in ("texts", "labels") else SuggestRequest
    with pytest.raises(ValidationError) as found:
        kind.model_validate(many[what])
    assert found.value.error_count() <= 10


def test_texts_of_labels_count_as_examples():
    """Each is learned as one, so that the limit of examples must hold for them."""
    texts = [{"label": f"label {n}", "texts": ["a"] * 100} for n in range(10)]
    assert len(LearnRequest.model_validate({"label_texts": texts}).label_texts) == 10
    with pytest.raises(ValidationError, match="at most 1000 examples and texts of labels; got 1001"):
        LearnRequest.model_validate({"label_texts": texts, "examples": [{"text": "a", "labels": []}]})


def test_pieces_of_nothing():
    assert b"".join(of_labels(LabelList(total=0, labels=[]))) == b'{"total":0,"labels":[]}'
    assert b"".join(of_suggestions([[]])) == b'{"results":[{"suggestions":[]}]}'


def test_a_search_can_be_cancelled(vast):
    rows = rows_of(vast, [{"features": {str(n % 50): 1.0}} for n in range(1000)])
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    started = time.process_time()
    with pytest.raises(LabelwoodError, match="cancelled"):
        vast.topk_ids(rows, 1000, cancelled=cancelled)
    assert time.process_time() - started < 2


def test_a_part_of_the_labels_is_made_alone(vast_service, monkeypatch):
    import labelwood.serve.service as module

    made = []
    entry = module.LabelEntry
    monkeypatch.setattr(module, "LabelEntry", lambda **fields: made.append(1) or entry(**fields))
    page = asyncio.run(vast_service.labels(start=100, limit=5, contains=""))
    assert (page.total, [one.label for one in page.labels]) == (N_LABELS, [f"label {n}" for n in range(100, 105)])
    page = asyncio.run(vast_service.labels(start=1, limit=2, contains="5999"))
    assert (page.total, [one.label for one in page.labels]) == (16, ["label 15999", "label 25999"])
    assert len(made) == 7


def test_pages_of_labels_make_the_list(model):
    from labelwood import load

    followed = FollowedModel(lambda: model, n_jobs=1)
    try:
        service = Service(followed, Metrics())
        learner = load(model).classifier_
        learner.labels.merge("money", "law")
        entries = learner.label_entries()
        assert [learner.label_entries([label])[0] for label in range(len(entries))] == entries
        assert learner.label_entries(range(1, 3)) == entries[1:3]
        whole = asyncio.run(service.labels(start=0, limit=100, contains="")).labels
        parts = [asyncio.run(service.labels(start=n, limit=1, contains="")).labels for n in range(len(whole) + 1)]
        assert [one for part in parts for one in part] == whole
    finally:
        followed.close()


def memory_of(process) -> int:
    """The largest memory that a process has held, in bytes."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def seconds_of(process) -> float:
    """The CPU seconds of a process."""
    parts = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


_EXAMPLE = b'{"features":{},"labels":[' + b"{}," * 998 + b"{}]}"
WRONG = {
    "labels of each": ("/learn", b'{"examples":[' + (_EXAMPLE + b",") * 998 + _EXAMPLE + b"]}"),
    "labels": ("/learn", b'{"examples": [{"features": {}, "labels": [' + b"{}," * MANY + b"{}]}]}"),
    "allowed": ("/suggest", b'{"features": {}, "allowed": [' + b"{}," * MANY + b"{}]}"),
    "inputs": ("/suggest-batch", b'{"inputs": [' + b"{}," * MANY + b"{}]}"),
    "examples": ("/learn", b'{"examples": [' + b"{}," * MANY + b"{}]}"),
    "missed": ("/explain", b'{"features": {}, "missed": [' + b"[]," * MANY + b"[]]}"),
    "values": ("/suggest", json.dumps({"features": {str(n): [] for n in range(300_000)}}).encode()),
    "columns": ("/suggest-batch", json.dumps({"inputs": [{"features": {f"x{n}": 1 for n in range(99_999)}}]}).encode()),
    "fields": ("/suggest", json.dumps({f"field{n}": 1 for n in range(200_000)}).encode()),
    "texts of a label": ("/learn", b'{"label_texts": [{"label": "a", "texts": [' + b"{}," * MANY + b"{}]}]}"),
    "label texts": ("/learn", b'{"label_texts": [' + b"{}," * MANY + b"{}]}"),
    "vector": ("/suggest", b'{"text": "a", "vector": [' + b"[]," * MANY + b"[]]}"),
    "one long field": ("/suggest", json.dumps({"a" * 3_000_000: 1}).encode()),
    "form": ("/v1/projects/labelwood/suggest", b"&".join(b"a=b" for _ in range(MANY))),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    from serving import Running

    path = tmp_path_factory.mktemp("small") / "model"
    OnlineTree(n_jobs=1).partial_fit([{0: 1.0}, {3: 1.0}], [["red"], ["blue"]]).save(path)
    service = Running(path)
    yield service
    service.kill()


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8"])
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_request_is_refused_at_its_first_errors(running, what, kind):
    path, body = WRONG[what]
    before, started = memory_of(running.process), seconds_of(running.process)
    content_type = "application/x-www-form-urlencoded" if what == "form" else kind
    answer = running.http.post(path, content=body, headers={"Content-Type": content_type})
    assert answer.status_code == 422
    assert len(answer.text) < 3000
    assert seconds_of(running.process) - started < 10
    assert memory_of(running.process) - before < 300 * 2**20


def test_a_long_form_is_decoded_beside_the_event_loop(vast_service):
    route = next(one for one in annif_routes(vast_service, {}).routes if one.path.endswith("/suggest"))
    body = b"text=" + quote("\u00e4 \u00f6" * 200_000).encode()

    class Form:
        async def body(self):
            return body

    async def work():
        with pytest.raises(LabelwoodError, match="takes features"):
            await route.endpoint("labelwood", Form())

    step, took = asyncio.run(longest_step(work()))
    assert step < max(0.5 * took, 0.02)


def test_labels_of_a_model_that_does_not_learn():
    X = np.eye(6, dtype=np.float32)
    model = LinearTree(n_jobs=1).fit(X, [["a"], ["b"], ["c"], ["a"], ["b"], ["c", "d"]])
    assert model.label_entries([3, 1]) == [model.label_entries()[3], model.label_entries()[1]]
