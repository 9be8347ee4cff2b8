"""The routes of the review page: decisions, and what strangers and pages of other sites may not do."""

from __future__ import annotations

import pytest
from animals import EX
from reviewing import Person

from labelwood.serve.http.auth import Tokens

SCRIPT = '<img src=x onerror="window.hurt = 1"><script>window.hurt = 1</script>'
READ, WRITE = "reading-token-0001", "writing-token-0001"


def test_a_sitting(anna):
    opened = anna.open(order="order")
    assert opened["document"] == "1"
    assert opened["suggestions"][0]["label"] == "pets"
    anna.decide("1", "accept", "pets")
    anna.decide("1", "reject", "law")
    anna.decide("1", "accept", "new label")
    again = anna.open()
    assert again["state"]["marks"] == {"pets": "accept", "law": "reject", "new label": "accept"}
    assert [one["label"] for one in again["others"]] == ["new label"]
    assert anna.undo() == {"document": "1", "action": "accept", "label": "new label"}
    assert anna.decide("1", "done")["done_by"] == "anna"
    assert anna.open()["document"] == "2"
    assert anna.undo()["action"] == "done"
    assert anna.open(document="1")["state"]["done_by"] is None
    anna.decide("1", "done")
    facts = anna.client.get("/facts").json()
    assert facts["progress"]["done"] == 1
    assert facts["progress"]["by_person"] == {"anna": 1}
    exported = anna.client.get("/export?format=csv")
    assert "reviewed.csv" in exported.headers["content-disposition"]
    assert exported.text.splitlines()[1].startswith("1,cats and dogs,pets,anna,")


def test_an_empty_queue(anna):
    for document in map(str, range(1, 7)):
        anna.decide(document, "done")
    assert anna.open()["document"] is None


def test_a_vocabulary_is_closed(animal_desk, client_of):
    anna = Person(client_of(animal_desk), "anna")
    refused = anna.post("/decide", document="1", action="accept", label="made up", key="k")
    assert (refused.status_code, "the vocabulary has no label" in refused.json()["detail"]) == (422, True)
    assert anna.decide("1", "accept", EX + "cat")["marks"] == {EX + "cat": "accept"}
    found = anna.client.get("/find", params={"q": "dom", "language": "fi"}).json()["labels"]
    assert (found[0]["name"], found[0]["place"], found[0]["also"]) == ("kissa", ["eläin"], "domestic | cat")
    assert anna.client.get("/find", params={"q": "dom", "language": "de"}).status_code == 422


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/open", {}),
        ("/open", {"who": ""}),
        ("/open", {"who": "a\nb"}),
        ("/open", {"who": "x" * 61}),
        ("/open", {"who": "anna", "order": "best"}),
        ("/open", {"who": "anna", "document": "99"}),
        ("/open", {"who": "anna", "skip": "99"}),
        ("/open", {"who": "anna", "language": "<b>"}),
        ("/decide", {"who": "anna", "key": "k", "document": "1", "action": "burn"}),
        ("/decide", {"who": "anna", "key": "k", "document": "1", "action": "accept"}),
        ("/decide", {"who": "anna", "key": "k", "document": "1", "action": "accept", "label": "a\x00b"}),
        ("/decide", {"who": "anna", "key": "k", "document": "1", "action": "done", "label": "x"}),
        ("/decide", {"who": "anna", "key": "k", "document": "99", "action": "done"}),
        ("/decide", {"who": "anna", "key": "k k", "document": "1", "action": "done"}),
        ("/decide", {"who": "anna", "key": "k", "document": "1", "action": "done", "more": 1}),
        ("/undo", {"who": "anna"}),
    ],
)
def test_wrong_requests_change_nothing(anna, path, body):
    answer = anna.client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    assert anna.client.get("/facts").json()["progress"]["done"] == 0
    assert anna.open(document="1")["state"]["marks"] == {}


@pytest.mark.parametrize("query", ["/find", "/find?q=" + "x" * 201, "/find?q=a&limit=0", "/why?document=99&label=a",
                                   "/why?document=1", "/export?format=exe"])  # fmt: skip
def test_wrong_questions(anna, query):
    assert anna.client.get(query).status_code == 422


def test_every_field_comes_back_as_text(desk_of, client_of):
    desk = desk_of([SCRIPT], ids=[SCRIPT], model=None, label_texts={SCRIPT: [SCRIPT]})
    anna = Person(client_of(desk), SCRIPT[:60])
    opened = anna.post("/open")
    assert opened.headers["content-type"] == "application/json"
    assert opened.json()["document"] == SCRIPT
    anna.decide(SCRIPT, "accept", SCRIPT)
    anna.decide(SCRIPT, "done")
    for path in ("/facts", f"/find?q={'img'}", "/export?format=csv", "/export?format=jsonl"):
        answer = anna.client.get(path)
        assert answer.status_code == 200
        assert "html" not in answer.headers["content-type"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert SCRIPT[:20] in answer.text.replace('\\"', '"')
    assert anna.client.get("/facts").json()["progress"]["by_person"] == {SCRIPT[:60]: 1}


def test_answers_forbid_scripts_and_frames(anna):
    for path in ("/", "/review.js", "/find.js", "/common.js", "/review.css", "/facts", "/nowhere"):
        headers = anna.client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self'")
        for part in ("frame-ancestors", "base-uri", "form-action"):
            assert f"{part} 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    page = anna.client.get("/").text
    assert "<script>" not in page
    assert not any(word in page for word in ("onclick", "onload", " style=", "<style", "javascript:"))


def test_only_requests_to_this_machine(anna):
    for host in ("evil.example", "localhost.evil.example", "192.0.2.1"):
        assert anna.client.get("/facts", headers={"Host": host}).status_code == 403
    assert anna.client.get("/facts", headers={"Host": "127.0.0.1:8766"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_change_nothing(anna, site):
    body = {"who": "anna", "key": "k", "document": "1", "action": "done"}
    headers = {"Sec-Fetch-Site": site, "Origin": "http://evil.example"}
    assert anna.client.post("/decide", json=body, headers=headers).status_code == 403
    plain = anna.client.post("/decide", content='{"who": "anna"}', headers={"Content-Type": "text/plain"})
    assert (plain.status_code, "Content-Type" in plain.json()["detail"]) == (422, True)
    assert anna.client.get("/facts").json()["progress"]["done"] == 0
    assert anna.client.post("/decide", json=body, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_tokens(desk_of, client_of):
    client = client_of(desk_of(), tokens=Tokens([f"read {READ}", f"write {WRITE}"]))
    body = {"who": "anna", "key": "k", "document": "1", "action": "done"}
    assert client.get("/").status_code == 200
    for path in ("/facts", "/find?q=a", "/why?document=1&label=a", "/export"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"Authorization": f"Bearer {READ}"}).status_code == 200
    assert client.post("/decide", json=body).status_code == 401
    assert client.post("/decide", json=body, headers={"Authorization": f"Bearer {READ}"}).status_code == 403
    assert client.post("/decide", json=body, headers={"Authorization": f"Bearer {WRITE}"}).status_code == 200


def test_a_large_body_is_refused(anna):
    assert anna.client.post("/decide", content=b"x" * 5_000_000).status_code == 413
