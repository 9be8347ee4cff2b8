"""The commands on texts: train, predict, eval, info, and what they say of wrong input."""

from __future__ import annotations

import io
import json

import pytest

from labelwood.cli import main

ROWS = [
    ("Cats and dogs", "A cat, a dog and a hamster", "pets"),
    ("The dog", "barks at the cat", "pets;noise"),
    ("Income tax", "The court and the tax", "law"),
    ("Tax court", "The judge of the tax court", "law;money"),
] * 5


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "docs.csv"
    lines = "".join(f'{number},"{title}","{body}",{tags}\n' for number, (title, body, tags) in enumerate(ROWS))
    path.write_text("id,title,body,tags\n" + lines)
    return path


@pytest.fixture
def model(table, tmp_path, capsys):
    path = tmp_path / "model"
    assert main(["train", str(table), "-o", str(path), "--random-state", "0"]) == 0
    capsys.readouterr()
    return path


def test_from_a_table_to_suggestions(labelwood, table, model, tmp_path):
    assert labelwood("predict", model, "my dog barks", "-k", 1).out.startswith("pets:")
    assert labelwood("predict", model, "tax", "-k", 1).out.startswith("law:")
    (tmp_path / "more.csv").write_text("title,body\nThe court,and a judge\nHamster,and cat\n")
    lines = labelwood("predict", model, tmp_path / "more.csv", "--json", "-k", 1).out.splitlines()
    assert [json.loads(line)["labels"] for line in lines] == [["law"], ["pets"]]
    found = labelwood("eval", model, table, "--json").json
    assert found["P@1"] == 100
    assert found["rows"] == len(ROWS)
    facts = labelwood("info", model, "--json").json
    assert facts["encoder"]["name"] == "tfidf"
    assert "encoder.vocabulary.utf8.npy" in facts["files"]
    assert "tfidf" in labelwood("info", model).out


def test_training_says_what_it_did(labelwood, table, tmp_path):
    facts = labelwood("train", table, "-o", tmp_path / "m", "--json", "--min-df", 2, "--ngram-range", "1,2").json
    assert (facts["encoder"], facts["rows"], facts["labels"]) == ("tfidf", len(ROWS), 4)
    assert "encode" in facts["seconds"]
    assert labelwood("info", tmp_path / "m", "--json").json["encoder"]["parameters"]["ngram_range"] == [1, 2]
    hashed = labelwood("train", table, "-o", tmp_path / "h", "--encoder", "hashing", "--n-features", 64, "--json")
    assert (hashed.json["encoder"], hashed.json["features"]) == ("hashing", 64)


def test_told_columns(labelwood, table, tmp_path):
    told = ("--text", "body", "--labels", "title", "--sep", "|")
    assert labelwood("train", table, *told, "-o", tmp_path / "m", "--json").json["labels"] == 4
    assert labelwood("eval", tmp_path / "m", table, *told, "--json").json["P@1"] == 100


def test_standard_input_and_lines(labelwood, model, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the dog\nthe tax court\n")))
    lines = labelwood("predict", model, "-", "-k", 1, "--format", "lines").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["pets", "law"]
    (tmp_path / "raw.txt").write_text("the dog\nthe tax court\n")
    (tmp_path / "truth.txt").write_text("pets;noise\nlaw;money\n")
    found = labelwood("eval", model, tmp_path / "raw.txt", "--labels", tmp_path / "truth.txt", "--json").json
    assert found["P@1"] == 100


def test_vectors_stay_vectors(labelwood, model, table, tmp_path):
    (tmp_path / "v.txt").write_text("4 3 2\n0 0:1\n1 1:1\n0 0:1\n1 1:1\n")
    assert "encoder" not in labelwood("train", tmp_path / "v.txt", "-o", tmp_path / "v", "--json").json
    said = labelwood("predict", tmp_path / "v", table).complaint(2)
    assert "was trained on vectors, but" in said
    said = labelwood("train", tmp_path / "v.txt", "-o", tmp_path / "w", "--min-df", 2).complaint(2)
    assert "--min-df has no effect: it is for texts, but" in said
    said = labelwood("train", tmp_path / "v.txt", "-o", tmp_path / "w", "--encoder", "tfidf").complaint(2)
    assert "--encoder has no effect: it is for texts" in said


def test_complaints(labelwood, model, table, tmp_path):
    assert "no such file" in labelwood("predict", model, tmp_path / "missing.csv").complaint(1)
    assert "no such file" in labelwood("predict", model, "missing.csv").complaint(1)
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    said = labelwood("train", tmp_path / "odd.csv", "-o", tmp_path / "m").complaint(1)
    assert said.endswith("cannot tell which column holds the labels; the columns are 'a', 'b'. Pass --labels NAME.")
    said = labelwood("train", table, "-o", tmp_path / "m", "--ngram-range", "2,1").complaint(2)
    assert said.startswith("labelwood train: --ngram-range must be two integers")
    said = labelwood("train", table, "-o", tmp_path / "m", "--min-df", "99").complaint(1)
    assert "texts have no terms" in said or "--max-df" in said
    said = labelwood("train", table, "-o", tmp_path / "m", "--encoder", "bert").complaint(2)
    assert "--encoder takes one of tfidf, hashing; got 'bert'" in said
    assert not (tmp_path / "m").exists()


def test_help_names_the_flags_of_the_encoder(labelwood):
    text = labelwood("train", "--help").out
    assert "parameters of the encoder tfidf, for texts" in text
    assert "--ngram-range" in text
    assert "--alternate-sign" in labelwood("train", "--encoder", "hashing", "--help").out


def test_an_online_tree_of_texts_learns_on(labelwood, tmp_path):
    first, more, model, small = (tmp_path / name for name in ("a.csv", "b.csv", "model", "small"))
    first.write_text("text,tags\n" + "cats and dogs,pets\nincome tax,law;money\n" * 5)
    more.write_text("text,tags\n" + "the dog barks at the moon,noise\n" * 5)
    words = ("--method", "online-tree", "--encoder", "hashing", "--n-features", 4096)
    assert labelwood("train", first, "-o", model, *words).code == 0
    learned = labelwood("learn", model, more, "--json").json
    assert (learned["rows"], learned["new_labels"]) == (5, 1)
    assert "noise" in labelwood("predict", model, "barks at the moon", "-k", 1).out
    assert "pets" in labelwood("predict", model, "cats and dogs", "-k", 1).out
    assert labelwood("labels", model, "rename", "noise", "sound").code == 0
    assert labelwood("learn", model, "--inference-only", "-o", small).code == 0
    assert "sound" in labelwood("predict", small, "barks at the moon", "-k", 1).out
    batch = tmp_path / "linear"
    assert labelwood("train", first, "-o", batch).code == 0
    assert "this linear-tree model cannot learn" in labelwood("learn", batch, more).complaint(1)
    assert "law" in labelwood("labels", batch, "list").out


def test_label_texts(labelwood, tmp_path):
    docs, names, model = tmp_path / "docs.csv", tmp_path / "names.tsv", tmp_path / "model"
    docs.write_text(
        "text,labels\ncats and dogs,pets\na dog barks,pets\ntax law,law\nincome tax,law\n", encoding="utf-8"
    )
    names.write_text("zebra\tzebras\tstriped horses\npets\t\nlaw\n\n", encoding="utf-8")
    trained = labelwood("train", docs, "-o", model, "--label-texts", names, "--json", "--n-jobs", 1)
    assert (trained.json["rows"], trained.json["labels"]) == (4, 3)
    assert "label texts: for 1 of 2 labels with training rows, and for 1 labels without any\n" in trained.err
    assert labelwood("predict", model, "two zebras and striped horses", "-k", 1, "--json").json["labels"] == ["zebra"]
    chosen = labelwood("train", docs, "-o", model, "--label-texts", names, "--method", "auto", "--json", "--n-jobs", 1)
    assert chosen.json["method"] == "ranker"
    assert "ranker: the labels have texts" in chosen.err
    names.write_text("\tstriped horses\n", encoding="utf-8")
    assert "line 1: the first cell must be a label" in labelwood(
        "train", docs, "-o", model, "--label-texts", names
    ).complaint(1)
    missing = labelwood("train", docs, "-o", model, "--label-texts", tmp_path / "no.tsv").complaint(1)
    assert "no.tsv" in missing


def test_label_texts_need_texts(labelwood, data, tmp_path):
    names = tmp_path / "names.tsv"
    names.write_text("0\tzero\n", encoding="utf-8")
    said = labelwood("train", data, "-o", tmp_path / "model", "--label-texts", names).complaint(2)
    assert "--label-texts needs data of texts" in said


def test_a_ranker_explains_itself(labelwood, tmp_path):
    docs, model = tmp_path / "docs.csv", tmp_path / "model"
    rows = ["cats and dogs,pets", "a dog barks,pets", "tax law,law", "income tax,law"] * 10
    docs.write_text("text,labels\n" + "\n".join(rows) + "\n", encoding="utf-8")
    members = '["linear-tree", "one-vs-rest"]'
    trained = labelwood(
        "train", docs, "-o", model, "--method", "ranker", "--models", members, "--n-boosted", 3, "--n-jobs", 1
    )
    assert trained.code == 0, trained.err
    said = labelwood("explain", model, "my dog and my cats").out
    assert "any candidate" in said
    assert "by linear-tree alone" in said


def test_columns_with_weights_are_fields(labelwood, table, tmp_path):
    model = tmp_path / "m"
    assert labelwood("train", table, "-o", model, "--text", "title^2,body", "--labels", "tags").code == 0
    encoder = labelwood("info", model, "--json").json["encoder"]["parameters"]
    assert encoder["fields"] == {"title": 2.0, "body": 1.0}
    assert labelwood("eval", model, table, "--json").json["P@1"] == 100
    assert labelwood("predict", model, '{"title": "Cats", "body": "a hamster"}', "-k", 1).out.startswith("pets:")
    assert labelwood("predict", model, "my dog barks", "-k", 1).out.startswith("pets:")
    assert "dog" in labelwood("explain", model, '{"body": "a dog barks"}', "-k", 1).out
    assert "not a JSON object" in labelwood("predict", model, "{title: 3}").complaint(2)
    told = labelwood("predict", model, '{"heading": "The dog"}').complaint(1)
    assert "has none of the fields title, body; it has 'heading'" in told


def test_fields_that_are_missing_are_reported(labelwood, table, tmp_path):
    model = tmp_path / "m"
    assert labelwood("train", table, "-o", model, "--text", "title^2,body", "--labels", "tags").code == 0
    (tmp_path / "one.csv").write_text("title\nThe dog\n")
    assert "there is no column 'body'; the columns are 'title'" in labelwood("predict", model, tmp_path / "one.csv").err
    assert labelwood("predict", model, tmp_path / "one.csv", "--text", "title", "-k", 1).out.startswith("pets:")
    assert "the model reads the fields title, body" in labelwood("predict", model, table, "--text", "id").complaint(2)
    records = [{"title": "The dog"}, {"title": "Tax court", "body": "judge"}, {"body": "tax court"}]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    found = labelwood("predict", model, tmp_path / "some.jsonl", "-k", 1)
    assert [line.partition(":")[0] for line in found.out.splitlines()] == ["pets", "law", "law"]
    assert "the field title is missing in 1 of 3 rows; it is read as empty" in found.err
    assert "the field body is missing in 1 of 3 rows; it is read as empty" in found.err
    (tmp_path / "none.jsonl").write_text('{"title": "a"}\n{"heading": "b"}\n')
    assert "line 2: has no 'title'" in labelwood("predict", model, tmp_path / "none.jsonl").complaint(1)


def test_fields_as_json(labelwood, table, tmp_path):
    fields = {"title": {"weight": 2, "ngram_range": [1, 2]}, "body": 1}
    told = ("train", table, "-o", tmp_path / "m", "--fields", json.dumps(fields))
    assert labelwood(*told).code == 0
    assert labelwood("eval", tmp_path / "m", table, "--json").json["P@1"] == 100
    assert "exclude each other" in labelwood(*told, "--text", "title").complaint(2)
    wrong = labelwood("train", table, "-o", tmp_path / "m", "--fields", '{"title": 0, "body": 1}').complaint(2)
    assert "--fields must give each field a weight greater than 0" in wrong
    (tmp_path / "lines.txt").write_text("a dog\n")
    (tmp_path / "tags.txt").write_text("pets\n")
    lines = ("train", tmp_path / "lines.txt", "-o", tmp_path / "m", "--labels", tmp_path / "tags.txt")
    assert "has one text per line and no columns" in labelwood(*lines, "--text", "title^2").complaint(2)


@pytest.mark.parametrize("text", ["title^0", "title,title", "title,,body"])
def test_bad_columns_are_refused(labelwood, table, tmp_path, text):
    assert "--text" in labelwood("train", table, "-o", tmp_path / "m", "--text", text).complaint(2)


def test_fields_of_a_pipe_and_of_parquet(labelwood, table, tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "docs.parquet"
    columns = {"title": [row[0] for row in ROWS], "body": [row[1] for row in ROWS], "tags": [row[2] for row in ROWS]}
    parquet.write_table(pyarrow.table(columns), path)
    assert labelwood("train", path, "-o", tmp_path / "m", "--text", "title^2,body").code == 0
    lines = b'{"title": "The dog"}\n{"title": "Tax", "body": "court"}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    found = labelwood("predict", tmp_path / "m", "-", "-k", 1).out.splitlines()
    assert [line.partition(":")[0] for line in found] == ["pets", "law"]


def test_a_thesaurus_with_other_concepts(labelwood, table, tmp_path):
    """Concepts without training rows, a label without a place, a label in two places, a label that is a group."""
    thesaurus = tmp_path / "thesaurus.json"
    thesaurus.write_text(json.dumps({"law": {"tax law": ["money"], "more": ["money"]}, "nature": ["pets", "whales"]}))
    done = labelwood("train", table, "-o", tmp_path / "ordered", "--hierarchy", thesaurus, "--max-memory", "2GB")
    assert done.code == 0
    remarks, _, _ = done.err.partition("next: ")
    assert remarks == (
        "labelwood train: hierarchy: concepts that are no labels of the training data, left out: 1 (such as 'whales'); "
        "labels in several places, of which the one nearest the root counts: 1 (such as 'money'); "
        "labels without a place, put into a group of their own: 1 (such as 'noise')\n"
    )
    assert labelwood("predict", tmp_path / "ordered", "tax", "-k", 1).out.startswith("law:")
    thesaurus.write_text('["whales", "sharks"]')
    complaint = labelwood("train", table, "-o", tmp_path / "none", "--hierarchy", thesaurus).complaint(1)
    assert "none of its 2 concepts is a label of the training data" in complaint
