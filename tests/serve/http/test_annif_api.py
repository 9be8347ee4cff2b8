"""Annif, with a Labelwood service behind its http backend; ``make test-annif`` installs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import httpx
import pytest

from labelwood import HashingEncoder, OnlineTree, TextClassifier

VOCABULARY = {
    "http://example.org/pets": "pets", "http://example.org/law": "law", "http://example.org/money": "money",
}  # fmt: skip
TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due"]
SUBJECTS = [["http://example.org/pets"], ["http://example.org/pets"], ["http://example.org/law"],
            ["http://example.org/law", "http://example.org/money"]]  # fmt: skip


@pytest.fixture
def labelled_by_uri(tmp_path: Path) -> Path:
    model = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**12, n_jobs=1))
    model.fit(TEXTS * 5, SUBJECTS * 5).save(tmp_path / "uris")
    return tmp_path / "uris"


def test_what_the_backend_asks(serving, labelled_by_uri, model, tmp_path):
    service = serving(labelled_by_uri)
    project = service.http.get("/v1/projects/labelwood").json()
    assert project["is_trained"] is True
    assert project["modification_time"].startswith("20")
    assert service.http.get("/v1/projects").json() == {"projects": [project]}
    asked = service.http.post("/v1/projects/labelwood/suggest", data={"text": "a dog & cat", "limit": "2"})
    assert asked.json()["results"][0]["uri"] == "http://example.org/pets"
    assert len(asked.json()["results"]) == 2
    assert service.http.get("/v1/projects/other").status_code == 404
    for form in (b"", b"limit=3", b"text=a&limit=x", b"text=a&limit=0", b"\xff", b"text=a&threshold=nan", b"%"):
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = service.http.post("/v1/projects/labelwood/suggest", content=form, headers=headers)
        assert answer.status_code == 422, form

    (tmp_path / "vocabulary.tsv").write_text("<http://example.org/pets>\tpets\n<http://example.org/law>\tlaw\n")
    named = serving(model, "--vocabulary", tmp_path / "vocabulary.tsv")  # labels that are names, URIs beside them
    hits = named.http.post("/v1/projects/labelwood/suggest", data={"text": "tax law"}).json()["results"]
    assert (hits[0]["uri"], hits[0]["label"]) == ("http://example.org/law", "law")
    assert {hit["uri"] for hit in hits} == {"http://example.org/pets", "http://example.org/law"}


def test_annif_suggests_our_labels(serving, labelled_by_uri, tmp_path):
    annif = os.environ.get("LABELWOOD_ANNIF")
    if not annif:
        pytest.skip("no Annif; see make test-annif")
    token = "reading-token-0001"
    (tmp_path / "tokens").write_text(f"read {token}\n")
    service = serving(labelled_by_uri, "--tokens", tmp_path / "tokens")
    (tmp_path / "vocabulary.tsv").write_text("".join(f"<{uri}>\t{name}\n" for uri, name in VOCABULARY.items()))
    endpoint = httpx.URL(service.facts["url"]).copy_with(
        username="annif", password=token, path="/v1/projects/labelwood/suggest"
    )
    (tmp_path / "projects.cfg").write_text(
        f"[ours]\nname=Ours\nlanguage=en\nbackend=http\nvocab=subjects\nlimit=3\nendpoint={endpoint}\n"
    )

    def run(*words: str, text: str = "") -> str:
        done = subprocess.run([annif, *words], input=text, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("load-vocab", "subjects", "vocabulary.tsv", "--language", "en")
    assert "True" in run("show-project", "ours")
    rows = [line.split("\t") for line in run("suggest", "ours", text="a dog barks at cats").splitlines()]
    assert rows[0][:2] == ["<http://example.org/pets>", "pets"]
    assert 0.3 < float(rows[0][2]) <= 1
