"""Every flag of ``labelwood review`` has an effect that a test shows, or the command says that it has none."""

from __future__ import annotations

import csv
import shutil
import socket
from pathlib import Path

import httpx
import pytest
from reviewing import Person
from serving import TEXTS, assert_flags_have_tests

from labelwood.cli import main
from labelwood.cli.main import parser_of

HERE = Path(__file__).parent
# The test that shows the effect of a flag on the page, on the documents or on the output.
SHOWN = {
    "-o": "test_server.py::test_export_beside_a_running_page",
    "--output": "test_flags.py::test_the_output_and_the_texts",
    "--text": "test_flags.py::test_the_output_and_the_texts",
    "--format": "test_flags.py::test_the_output_and_the_texts",
    "--export": "test_server.py::test_export_beside_a_running_page",
    "--state": "test_server.py::test_export_beside_a_running_page",
    "--label-texts": "test_server.py::test_export_beside_a_running_page",
    "--vocabulary": "test_server.py::test_names_in_a_language_without_a_model",
    "--language": "test_flags.py::test_addresses_tokens_and_languages",
    "--host": "test_flags.py::test_addresses_tokens_and_languages",
    "--tokens": "test_flags.py::test_addresses_tokens_and_languages",
    "--json": "test_flags.py::test_addresses_tokens_and_languages",
    "--port": "test_flags.py::test_a_port_that_is_taken",
    "--model": "test_flags.py::test_order_and_suggestions",
    "-k": "test_flags.py::test_order_and_suggestions",
    "--id": "test_flags.py::test_order_and_suggestions",
    "--next": "test_flags.py::test_order_and_suggestions",
    "--seed": "test_flags.py::test_order_and_suggestions",
}
UNSEEN = {
    "--n-jobs": "suggestions never depend on threads",
    "--max-memory": "a limit that is not reached",
    "-q": "there is no progress to hide",
    "-v": "it goes to stderr",
}
# With --export: a value for each flag; None if it takes none.
VALUES = {
    "--format": "csv", "--text": "title", "--max-memory": "2GB", "--model": "by-title",
    "--vocabulary": "concepts.tsv", "--label-texts": "names.tsv", "--language": "fi", "--id": "nr", "-k": "3",
    "--next": "order", "--seed": "3", "--state": "elsewhere", "--host": "::1", "--port": "80", "--tokens": "tokens",
    "--n-jobs": "1", "--json": None, "-q": None, "-v": None,
}  # fmt: skip
REFUSED = {"--language": "no vocabulary"}
ALWAYS = {"-h", "--help", "-o", "--output", "--export"}


def test_every_flag_has_a_test():
    assert_flags_have_tests("review", SHOWN, UNSEEN, HERE)


@pytest.fixture
def reviewed(folder, desk_of, client_of, monkeypatch):
    """A directory with documents of which one is reviewed, and the decisions in ``out.review``."""
    monkeypatch.chdir(folder)
    rows = [[f"d{n}", f"n{n}", text, f"title {n}"] for n, text in enumerate(TEXTS)]
    with (folder / "docs.csv").open("w") as file:
        csv.writer(file).writerows([["id", "nr", "text", "title"], *rows])
    (folder / "titles.csv").write_text("title,labels\ncats,pets\ntax,law\n")
    assert main(["train", "titles.csv", "-o", "by-title", "--text", "title", "--n-jobs", "1", "-q"]) == 0
    texts = [f"{text}\ntitle {n}" for n, text in enumerate(TEXTS)]
    desk = desk_of(texts, ids=[row[0] for row in rows], model=None)
    anna = Person(client_of(desk), "anna")
    for label in ("pets", "http://x.org/1"):
        anna.decide("d1", "accept", label)
    anna.decide("d1", "done")
    desk.close()
    return folder / "state-0"


def exported(state, suffix, *words):
    """The exit code and the content of an export."""
    output = Path(f"out.{suffix}")
    output.unlink(missing_ok=True)
    shutil.rmtree(f"out.{suffix}.review", ignore_errors=True)
    shutil.copytree(state, f"out.{suffix}.review")
    code = main(["review", "docs.csv", "-o", str(output), "--export", *words])
    return code, output.read_text() if output.exists() else None


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("flag", [flag for flag in parser_of("review", []).flags() if flag not in ALWAYS])
def test_a_flag_beside_export_has_an_effect_or_is_told(reviewed, flag, suffix, capsys):
    plain = exported(reviewed, suffix)
    assert plain[0] == 0
    assert "d1" in plain[1]
    capsys.readouterr()
    value = VALUES[flag]
    found = exported(reviewed, suffix, flag, *([] if value is None else [value]))
    said = capsys.readouterr().err
    if f"{flag} has no effect: " in said:
        assert flag not in ("-q", "-v")
        return
    if found[0] != 0:
        assert flag in REFUSED, said
        assert REFUSED[flag] in said
        return
    if flag not in {*UNSEEN, "--format"}:
        assert found != plain, f"{flag} changed nothing, and nobody said so"


def test_order_and_suggestions(reviewing, folder):
    with (folder / "docs.csv").open("w") as file:
        csv.writer(file).writerows([["nr", "text"], *([f"n{n}", text] for n, text in enumerate(TEXTS))])
    running = reviewing("--model", folder / "model", "-k", "1", "--id", "nr", "--next", "random", "--seed", "3")
    opened = Person(running.http, "anna").open(order="random")
    assert len(opened["suggestions"]) == 1
    assert running.http.get("/facts").json()["order"] == "random"
    drawn = {Person(running.http, f"person {n}").open(order="random")["document"] for n in range(5)}
    assert drawn | {opened["document"]} == {f"n{n}" for n in range(len(TEXTS))}


def test_addresses_tokens_and_languages(reviewing, folder):
    (folder / "tokens").write_text("write abcdefghijklmnop\n")
    (folder / "concepts.ttl").write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        '<http://x.org/1> a skos:Concept; skos:prefLabel "dogs"@en, "koirat"@fi .\n'
    )
    words = ("--vocabulary", folder / "concepts.ttl", "--language", "fi")
    running = reviewing("--host", "127.0.0.2", "--tokens", folder / "tokens", "--json", *words)
    assert running.facts["url"].startswith("http://127.0.0.2:")
    assert running.http.get("/facts").status_code == 401
    headers = {"Authorization": "Bearer abcdefghijklmnop"}
    facts = httpx.get(f"{running.facts['url']}facts", headers=headers)
    assert (facts.status_code, facts.json()["language"]) == (200, "fi")


def test_a_port_that_is_taken(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["review", str(folder / "docs.csv"), "-o", str(folder / "out.csv"), "--port", port]
        assert main(words) == 1
    assert port in capsys.readouterr().err


def test_the_output_and_the_texts(reviewed):
    words = ["review", "docs.csv", "--state", str(reviewed), "--export", "--format", "csv"]
    assert main([*words, "--output", "both.csv"]) == 0
    assert main([*words, "--output", "title.csv", "--text", "title"]) == 0
    assert "a dog barks" in Path("both.csv").read_text()
    assert "a dog barks" not in Path("title.csv").read_text()
