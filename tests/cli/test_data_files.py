"""Data files of the commands: columns that a model keeps, several files at once, CSV output, pipes, split."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess

import numpy as np
import pytest

import labelwood as lw
from labelwood import data

ROWS = [
    ("a1", "Cats and dogs", "A cat, a dog and a hamster", "pets"),
    ("a2", "The dog", "barks at the cat", "pets/noise"),
    ("a3", "Income tax", "The court and the tax", "law"),
    ("a4", "Tax court", "The judge of the tax court", "law/money"),
] * 5
CHOSEN = ("--text", "heading,article", "--labels", "subject", "--sep", "/")


def write_table(path, rows, names=("key", "heading", "article", "subject")):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])
    return path


def read_table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "docs.csv", ROWS)


@pytest.fixture
def chosen(labelwood, table, tmp_path):
    """A model of texts whose columns were named at training."""
    path = tmp_path / "chosen"
    assert labelwood("train", table, "-o", path, *CHOSEN, "--random-state", 0).code == 0
    return path


def stdin(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_model_keeps_the_columns_of_its_training(labelwood, table, chosen, tmp_path):
    assert labelwood("eval", chosen, table, "--json").json["P@1"] == 100
    assert labelwood("calibrate", chosen, table, "--json").json["rows"] == len(ROWS)
    assert labelwood("explain", chosen, table, "--row", 3, "--json").json["suggestions"][0]["label"] == "law"
    new = write_table(tmp_path / "new.csv", [("b1", "My dog", "barks")], ("key", "heading", "article"))
    assert labelwood("predict", chosen, new, "-k", 1).out.startswith("pets:")
    assert labelwood("info", chosen, "--json").json["columns"] == {
        "text": ["heading", "article"],
        "labels": "subject",
        "sep": "/",
    }
    small = tmp_path / "small"
    assert labelwood("shrink", chosen, table, "-o", small, "--dtype", "int8").code == 0
    assert labelwood("eval", small, table, "--json").json["P@1"] == 100


def test_a_flag_overrides_the_columns_of_the_training(labelwood, chosen, tmp_path):
    other = write_table(tmp_path / "other.csv", [("tax court", "dog", "pets;noise")], ("key", "body", "tags"))
    assert "no column 'heading'" in labelwood("predict", chosen, other).complaint(1)
    assert labelwood("predict", chosen, other, "--text", "body", "-k", 1).out.startswith("pets:")
    assert labelwood("predict", chosen, other, "--text", "key", "-k", 1).out.startswith("law:")
    words = ("--text", "body", "--labels", "tags", "--sep", ";")
    assert labelwood("eval", chosen, other, *words, "--json").json["P@1"] == 100


def test_an_online_model_learns_the_columns_of_its_training(labelwood, table, tmp_path):
    model = tmp_path / "online"
    words = (*CHOSEN, "--method", "online-tree", "--encoder", "hashing")
    assert labelwood("train", table, "-o", model, *words).code == 0
    more = write_table(tmp_path / "more.csv", [("c1", "The moon", "and the stars", "sky/night")] * 3)
    assert labelwood("learn", model, more, "--json").json["new_labels"] == 2
    again = write_table(tmp_path / "again.csv", [("c1", "The moon", "and the stars", "sky/night")] * 3)
    assert labelwood("learn", model, again, "--json").json["new_labels"] == 0


def test_a_model_without_columns_loads(labelwood, table, chosen):
    whole = lw.load(chosen)
    manifest, arrays = whole.to_saved()
    del manifest["columns"]
    restored = lw.methods.model_from_saved(manifest, arrays, where="here")
    assert restored.columns_ == data.Columns()
    for wrong in ([], {"text": "heading"}, {"text": []}, {"text": [1]}, {"sep": ""}, {"rows": "a"}):
        with pytest.raises(lw.FormatError, match="here: columns must be"):
            lw.methods.model_from_saved({**manifest, "columns": wrong}, arrays, where="here")


def test_a_label_column_with_the_name_of_a_text_is_not_read_as_text(labelwood, tmp_path):
    rows = [(title, tags) for _, title, _, tags in ROWS]
    table = write_table(tmp_path / "t.csv", rows, ("title", "summary"))
    model = tmp_path / "m"
    assert labelwood("train", table, "-o", model, "--labels", "summary", "--sep", "/").code == 0
    odd = write_table(tmp_path / "odd.csv", [("tax", "zebra")], ("title", "summary"))
    plain = write_table(tmp_path / "plain.csv", [("tax", "zebra")], ("title", "other"))
    assert labelwood("predict", model, odd).out == labelwood("predict", model, plain).out


def test_several_data_files(labelwood, tmp_path):
    first = write_table(tmp_path / "a.csv", ROWS[:10])
    second = write_table(tmp_path / "b.csv", ROWS[10:])
    whole = write_table(tmp_path / "c.csv", ROWS)
    words = (*CHOSEN, "--random-state", 0)
    assert labelwood("train", first, second, "-o", tmp_path / "two", *words, "--json").json["rows"] == len(ROWS)
    assert labelwood("train", whole, "-o", tmp_path / "one", *words).code == 0
    for command in (("predict",), ("eval", "--resamples", 10)):
        name, *rest = command
        two = labelwood(name, tmp_path / "two", first, second, *rest).out.splitlines()[:8]
        assert two == labelwood(name, tmp_path / "one", whole, *rest).out.splitlines()[:8]
    assert labelwood("calibrate", tmp_path / "two", first, second, "--json").json["rows"] == len(ROWS)
    (tmp_path / "v.txt").write_text("2 3 2\n0 0:1\n1 1:1\n")
    mixed = labelwood("train", first, tmp_path / "v.txt", "-o", tmp_path / "m").complaint(2)
    assert "a.csv holds texts, but" in mixed


def test_several_files_of_vectors(labelwood, tmp_path):
    (tmp_path / "a.txt").write_text("0 0:1\n1 1:1\n")
    (tmp_path / "b.txt").write_text("2 2:1\n0,2 0:1 3:1\n")
    facts = labelwood("train", tmp_path / "a.txt", tmp_path / "b.txt", "-o", tmp_path / "m", "--json").json
    assert (facts["rows"], facts["features"], facts["labels"]) == (4, 4, 3)
    found = labelwood("predict", tmp_path / "m", tmp_path / "a.txt", tmp_path / "b.txt", "-k", 1).out
    assert [line[0] for line in found.splitlines()[:3]] == ["0", "1", "2"]
    assert len(found.splitlines()) == 4


def test_words_without_quotes_are_not_files(labelwood, chosen):
    said = labelwood("predict", chosen, "my", "dog").complaint(2)
    assert "put a text in quotes: 'my dog'" in said


def test_csv_repeats_the_columns_of_the_data(labelwood, table, chosen, tmp_path):
    out = tmp_path / "suggestions.csv"
    assert labelwood("predict", chosen, table, "-k", 2, "--csv", "-o", out).code == 0
    found = read_table(out.read_text())
    assert list(found[0]) == ["key", "heading", "article", "subject", "label_1", "score_1", "label_2", "score_2"]
    assert [tuple(row.values())[:4] for row in found] == ROWS
    assert {row["label_1"] for row in found if row["key"] == "a3"} == {"law"}
    plain = labelwood("predict", chosen, table, "-k", 2).out.splitlines()
    assert [f"{row['label_1']}:{row['score_1']} {row['label_2']}:{row['score_2']}" for row in found] == plain
    assert "exclude each other" in labelwood("predict", chosen, table, "--csv", "--json").complaint(2)


def test_csv_of_other_sources(labelwood, chosen, model, test_data, tmp_path, monkeypatch):
    lines = [{"key": 1, "heading": "a dog", "article": "barks", "more": ["x"]}, {"heading": "tax", "late": None}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read_table(labelwood("predict", chosen, tmp_path / "rows.jsonl", "-k", 1, "--csv").out)
    assert [(row["key"], row["heading"], row["more"], row["label_1"]) for row in found] == [
        ("1", "a dog", '["x"]', "pets"),
        ("", "tax", "", "law"),
    ]
    [row] = read_table(labelwood("predict", chosen, "my dog", "-k", 1, "--csv").out)
    assert (row["text"], row["label_1"]) == ("my dog", "pets")
    found = read_table(labelwood("predict", model, test_data, "-k", 1, "--csv").out)
    assert [row["row"] for row in found] == [str(number) for number in range(1, 41)]
    stdin(monkeypatch, "the dog\n\nthe tax court\n")
    found = read_table(labelwood("predict", chosen, "-", "-k", 1, "--format", "lines", "--csv").out)
    assert [row["text"] for row in found] == ["the dog", "", "the tax court"]
    decided = read_table(labelwood("predict", chosen, "my dog", "-k", 3, "--csv", "--decide").out)
    assert set(decided[0]) == {"text", *(f"{name}_{n}" for n in (1, 2, 3) for name in ("label", "score"))}


@pytest.mark.parametrize("form", ["lines", "jsonl", "annif", "fasttext"])
def test_texts_from_a_pipe_are_answered_line_by_line(process, chosen, form):
    as_line = {
        "lines": "{}\n",
        "jsonl": '{{"article": "", "heading": "{}"}}\n',
        "annif": "{}\t<http://a>\n",
        "fasttext": "__label__x {}\n",
    }[form]
    child = process("predict", chosen, "-", "-k", 1, "--format", form, stdin=subprocess.PIPE)
    for text, label in (("the dog barks", "pets"), ("the tax court", "law"), ("a cat", "pets")):
        child.stdin.write(as_line.format(text))
        child.stdin.flush()
        assert child.stdout.readline().startswith(f"{label}:"), "answered before the next line is sent"
    out, err = child.communicate()
    assert (out, err, child.returncode) == ("", "", 0)


def test_vectors_from_a_pipe_are_answered_line_by_line(process, labelwood, model, test_data):
    expected = labelwood("predict", model, test_data, "-k", 2).out.splitlines(keepends=True)
    lines = test_data.read_text().splitlines(keepends=True)[1:]
    child = process("predict", model, "-", "-k", 2, stdin=subprocess.PIPE)
    for line, answer in zip(lines[:3], expected, strict=False):
        child.stdin.write(line)
        child.stdin.flush()
        assert child.stdout.readline() == answer
    out, err = child.communicate("".join(lines[3:]))
    assert (out.splitlines(keepends=True), err, child.returncode) == (expected[3:], "", 0)


def test_vectors_from_a_pipe_as_from_a_file(labelwood, model, test_data, tmp_path, monkeypatch):
    expected = labelwood("predict", model, test_data).out
    stdin(monkeypatch, test_data.read_text())  # with its header
    assert labelwood("predict", model, "-").out == expected
    content = test_data.read_text().partition("\n")[2]
    shifted = [
        " ".join([first, *(f"{int(f) + 1}:{v}" for f, v in (pair.split(":") for pair in rest))])
        for first, *rest in map(str.split, content.splitlines())
    ]
    stdin(monkeypatch, "\n".join(shifted) + "\n")  # ids from 1
    assert labelwood("predict", model, "-", "--format", "svmlight").out == expected
    stdin(monkeypatch, "0 1:1\n0 x:1\n")
    result = labelwood("predict", model, "-")
    assert result.code == 1
    assert "standard input, line 2: 'x:1'" in result.err


def test_formats_that_a_pipe_or_a_model_does_not_take(labelwood, chosen, model):
    assert "Parquet cannot be read from a pipe" in labelwood("predict", chosen, "-", "--format", "parquet").complaint(1)
    assert "vectors from a pipe are xmc or svmlight" in labelwood("predict", model, "-", "--format", "npz").complaint(1)
    assert "was trained on vectors" in labelwood("predict", model, "-", "--format", "lines").complaint(2)


def test_a_bad_line_of_a_pipe_is_named(process, chosen):
    child = process("predict", chosen, "-", "--format", "jsonl", stdin=subprocess.PIPE)
    child.stdin.write('{"heading": "a dog", "article": "barks"}\n')
    child.stdin.flush()
    assert child.stdout.readline()
    _, err = child.communicate('{"heading": \n')
    assert child.returncode == 1
    assert "standard input, line 2: not JSON" in err


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "ft", "txt", "csv.gz"])
def test_split_texts(labelwood, tmp_path, suffix):
    source, train, held_out = (tmp_path / f"{name}.{suffix}" for name in ("docs", "train", "held"))
    rows = [(f"text {n}, of\ncourse", f"a{n};b") for n in range(10)]
    if suffix.startswith("csv"):
        content = "id,text,tags\n" + "".join(f'{n},"{text}",{tags}\n' for n, (text, tags) in enumerate(rows))
    elif suffix == "tsv":
        content = "text\ttags\n" + "".join(f"text {n}\t{tags}\n" for n, (_, tags) in enumerate(rows))
    elif suffix == "ft":
        content = "".join(f"__label__a{n} text {n}\n" for n in range(10))
    elif suffix == "txt":
        content = "".join(f"text {n}\n" for n in range(10))
    else:
        records = [{"text": text, "tags": tags.split(";"), "id": n} for n, (text, tags) in enumerate(rows)]
        content = json.dumps(records) if suffix == "json" else "".join(json.dumps(row) + "\n" for row in records)
    with data._files.writing(source) as file:
        file.write(content.encode())
    facts = labelwood("split", source, train, held_out, "--share", 0.3, "--json").json
    assert (facts["train"]["rows"], facts["held_out"]["rows"]) == (7, 3)
    needs = suffix != "txt"
    whole, *parts = (data.load_text(path, needs_labels=needs) for path in (source, train, held_out))
    assert sorted(text for part in parts for text in part.texts) == sorted(whole.texts)
    assert [len(part.texts) for part in parts] == [7, 3]
    if needs:
        labels = dict(zip(whole.texts, whole.labels, strict=True))
        for part in parts:
            assert part.labels == [labels[text] for text in part.texts]
    again = tmp_path / f"again.{suffix}"
    assert labelwood("split", source, tmp_path / f"t.{suffix}", again, "--share", 0.3).code == 0
    assert again.read_bytes() == held_out.read_bytes()
    assert labelwood("split", source, tmp_path / f"t.{suffix}", again, "--share", 0.3, "--seed", 1).code == 0
    assert again.read_bytes() != held_out.read_bytes()


@pytest.mark.parametrize("suffix", ["txt", "svm", "npz", "lw"])
def test_split_vectors(labelwood, data, tmp_path, suffix):
    source = tmp_path / f"rows.{suffix}"
    assert labelwood("convert", data, source).code == 0
    train, held_out = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    assert labelwood("split", source, train, held_out, "--share", 0.25, "--seed", 3).code == 0
    whole, first, second = (lw.data.load(path) for path in (source, train, held_out))
    assert (first.n_rows, second.n_rows) == (90, 30)
    assert first.X.n_cols == second.X.n_cols == whole.X.n_cols
    stacked = np.vstack([first.X.toarray(), second.X.toarray()])
    assert sorted(map(tuple, stacked.tolist())) == sorted(map(tuple, whole.X.toarray().tolist()))


def test_split_complains(labelwood, table, tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    assert "three files" in labelwood("split", table, a, a).complaint(2)
    assert "--share takes a number between 0 and 1; got '1'" in labelwood("split", table, a, b, "--share", 1).complaint(
        2
    )
    said = labelwood("split", table, tmp_path / "a.jsonl", b).complaint(1)
    assert "a.jsonl says jsonl, but the data are csv" in said
    (tmp_path / "one.csv").write_text("text,tags\na,b\n")
    assert "at least 2 rows; got 1" in labelwood("split", tmp_path / "one.csv", a, b).complaint(1)
    assert os.listdir(tmp_path).count("a.csv") == 0
