"""``labelwood review`` as a process: it serves, keeps decisions through kills, and writes its output."""

from __future__ import annotations

import csv
import json
import threading

import httpx
import pytest
from injection import Faults
from reviewing import Person
from serving import LABELS, TEXTS

from labelwood import LinearTree
from labelwood.cli import main


def run(folder, *words, code=0):
    assert main(["review", str(folder / "docs.csv"), *map(str, words)]) == code


def test_the_output_is_written_at_the_end(reviewing, folder):
    running = reviewing("--model", folder / "model")
    assert (running.facts["documents"], running.facts["labels"]) == (len(TEXTS), 4)
    anna = Person(running.http, "anna")
    assert anna.open()["suggestions"]
    for number, labels in enumerate(LABELS):
        for label in labels:
            anna.decide(f"d{number}", "accept", label)
        anna.decide(f"d{number}", "done")
    code, said = running.stop()
    assert (code, "6 of 6 documents" in said) == (0, True)
    with (folder / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["labels"].split(";") for row in rows] == LABELS
    assert {row["who"] for row in rows} == {"anna"}


def test_a_decision_in_doubt_is_sent_again(reviewing, folder, injector):
    """A record that could be neither flushed nor removed is no fault of the request: the page tries again."""
    faults = Faults(injector, folder / "rules")
    log = folder / "out.csv.review" / "log"
    running = reviewing(environment=faults.environment)
    anna = Person(running.http, "anna")
    anna.decide("d0", "accept", "pets")
    body = {"document": "d1", "action": "accept", "label": "law", "key": "same"}
    faults.set(f"flush {log}/* 0 1 fail 5", f"truncate {log}/* 0 1 fail 5")
    refused = anna.post("/decide", **body)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1"), refused.text
    assert [anna.post("/decide", **body).json()["marks"] for _ in range(2)] == [{"law": "accept"}] * 2
    running.kill()
    again = Person(reviewing().http, "anna")
    assert [again.open(document=name)["state"]["marks"] for name in ("d0", "d1")] == [
        {"pets": "accept"},
        {"law": "accept"},
    ]
    assert [again.undo()["label"] for _ in range(3)] == ["law", "pets", None], "each is written once"


def test_decisions_survive_kills(reviewing, folder):
    """Ten kills under two people's decisions: what was answered is there, once, and nothing else is done."""
    answered, n_kills = {}, 10
    for kill in range(n_kills):
        running = reviewing()

        def work(who, running=running, kill=kill):
            for number in range(1000):
                body = {"who": who, "key": f"{who}-{kill}-{number}", "document": f"d{number % 3}", "action": "accept",
                        "label": f"{who} {kill} {number}"}  # fmt: skip
                try:
                    answer = running.http.post("/decide", json=body)
                except httpx.HTTPError:
                    return
                assert answer.status_code == 200
                answered[body["key"]] = (body["document"], body["label"])

        people = [threading.Thread(target=work, args=(who,)) for who in ("anna", "bert")]
        for one in people:
            one.start()
        threading.Event().wait(0.3)
        running.process.kill()
        for one in people:
            one.join()
        running.process.communicate()
    running = reviewing()
    person = Person(running.http, "clara")
    found = {document: person.open(document=document)["state"]["marks"] for document in ("d0", "d1", "d2")}
    assert len(answered) > n_kills
    for document, label in answered.values():
        assert found[document][label] == "accept"
    n_more = sum(map(len, found.values())) - len(answered)
    assert 0 <= n_more <= 2 * n_kills, "at most the decisions under way at each kill"


def test_export_beside_a_running_page(reviewing, folder, capsys):
    running = reviewing("--label-texts", folder / "names.tsv")
    anna = Person(running.http, "anna")
    anna.decide("d1", "accept", "pets")
    anna.decide("d1", "done")
    run(folder, "-o", folder / "other.jsonl", "--state", folder / "out.csv.review", "--export")
    (line,) = (folder / "other.jsonl").read_text().splitlines()
    assert (json.loads(line)["id"], json.loads(line)["labels"]) == ("d1", ["pets"])
    run(folder, "-o", folder / "out.csv", code=1)
    assert "another labelwood review is writing here" in capsys.readouterr().err


def test_names_in_a_language_without_a_model(reviewing, folder):
    running = reviewing("--vocabulary", folder / "concepts.tsv")
    opened = Person(running.http, "anna").open()
    assert opened["suggestions"][0]["name"] == "dogs"
    assert running.http.get("/facts").json()["new_labels"] is False


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "out.txt"], 1, ".csv, .jsonl or .tsv"),
        (["-o", "out.csv", "--model", "vectors"], 2, "was trained on vectors"),
        (["-o", "out.csv", "--id", "nr"], 1, "there is no column 'nr'"),
        (["-o", "out.csv", "--host", "0.0.0.0"], 1, "must be loopback"),
        (["-o", "out.csv", "--next", "best"], 2, "one of doubt, order, random"),
        (["-o", "out.csv", "--language", "fi"], 1, "no vocabulary"),
        (["-o", "out.csv", "--export", "--port", "80"], 2, "--port has no effect: --export opens no page"),
        ([], 2, "-o/--output is needed"),
    ],
)
def test_wrong_usage(folder, words, code, message, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    LinearTree(n_jobs=1).fit([[1.0, 0.0], [0.0, 1.0]], [["a"], ["b"]]).save(folder / "vectors")
    run(folder, *words, code=code)
    assert message in capsys.readouterr().err


def test_an_export_that_cannot_be_written_keeps_the_decisions(reviewing, folder, capsys):
    running = reviewing()
    anna = Person(running.http, "anna")
    anna.decide("d0", "accept", "no URI")
    anna.decide("d0", "done")
    assert running.stop()[0] == 0
    run(folder, "-o", folder / "out.tsv", "--state", folder / "out.csv.review", "--export", code=1)
    assert "all decisions are kept: run again with --export" in capsys.readouterr().err


def test_changed_texts_are_told(reviewing, folder, capsys):
    running = reviewing()
    Person(running.http, "anna").decide("d0", "done")
    assert running.stop()[0] == 0
    (folder / "docs.csv").write_text("id,text\nd0,another text\n")
    run(folder, "-o", folder / "out.csv", "--export")
    assert "1 decisions in" in (said := capsys.readouterr().err)
    assert "0 of 1 documents" in said
