"""What new users get wrong on texts: each mistake is one line that names the cure, or a remark beside the result."""

from __future__ import annotations

import pytest

CELLS = [("cats and dogs", "pets;animals"), ("income tax", "law;money"), ("a dog barks", "pets"), ("a court", "law")]


def write(path, rows, names=("text", "tags")):
    path.write_text(",".join(names) + "\n" + "".join(f"{text},{tags}\n" for text, tags in rows))
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "docs.csv", CELLS * 3)


@pytest.fixture
def model(labelwood, table, tmp_path):
    assert labelwood("train", table, "-o", tmp_path / "model", "-q").code == 0
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("name", "content", "cure"),
    [
        ("docs.csv", "text,tags\na dog,pets\n".encode("utf-16"), "convert it: iconv -f utf-16 -t utf-8"),
        ("docs.csv", "text,tags\nHündin,pets\n".encode("latin1"), "convert it: iconv -f latin1 -t utf-8"),
        ("docs.csv", b"", "the file is empty"),
        ("docs.csv", b"text,tags\na dog,\na cat,\n", "no row has a label; --labels names the column"),
        ("docs.xlsx", b"PK\x03\x04", "spreadsheets are not read; save the table as CSV in UTF-8"),
        ("docs", b"a dog", "the format is not known from the suffix; pass --format xmc (or svmlight, npz, lw)"),
    ],
)
def test_files_that_are_no_table_of_texts(labelwood, tmp_path, name, content, cure):
    (tmp_path / name).write_bytes(content)
    assert cure in labelwood("train", tmp_path / name, "-o", tmp_path / "new").complaint(1)


def test_what_is_no_file(labelwood, model, tmp_path):
    (tmp_path / "folder").mkdir()
    assert "folder: is a directory" in labelwood("train", tmp_path / "folder", "-o", tmp_path / "new").complaint(1)
    assert "a text: no such file" in labelwood("eval", model, "a text").complaint(1)
    assert "DATA is empty" in labelwood("predict", model, "").complaint(2)


def test_a_column_that_is_nearly_there(labelwood, table, tmp_path):
    said = labelwood("train", table, "-o", tmp_path / "new", "--labels", "tag").complaint(1)
    assert "there is no column 'tag'; did you mean tags?; the columns are 'text', 'tags'." in said


def test_labels_without_a_row_to_measure_on(labelwood, model, tmp_path):
    empty = write(tmp_path / "empty.csv", [("a dog", ""), ("a cat", "")])
    assert "no row has a label" in labelwood("eval", model, empty).complaint(1)


def test_a_separator_that_does_not_occur(labelwood, table, tmp_path):
    told = labelwood("train", table, "-o", tmp_path / "new", "--sep", "|").err
    assert "no cell of labels has the separator '|', but some have ';': 'pets;animals' is read as one label" in told
    assert "no cell of labels" not in labelwood("train", table, "-o", tmp_path / "new", "--sep", ";").err
    single = write(tmp_path / "single.csv", [("a dog", "dogs"), ("a cat", "cats")])
    assert "no cell of labels" not in labelwood("train", single, "-o", tmp_path / "new", "--sep", "|").err


def test_a_column_of_ids_as_labels(labelwood, tmp_path):
    rows = [(f"text {number}", f"id{number}") for number in range(30)]
    told = labelwood("train", write(tmp_path / "ids.csv", rows), "-o", tmp_path / "new").err
    assert "each of the 30 labels has one row" in told
    told = labelwood("train", write(tmp_path / "twice.csv", rows * 2), "-o", tmp_path / "new").err
    assert "has one row" not in told


def test_texts_without_a_known_word(labelwood, model, tmp_path):
    assert "the model knows no word of this text" in labelwood("predict", model, "zzz").err
    assert labelwood("predict", model, "a zzz dog").err == ""
    strange = write(tmp_path / "strange.csv", [("zzz", "pets"), ("dog", "pets"), ("yyy", "law")])
    assert "the model knows no word of 2 of 3 texts" in labelwood("predict", model, strange).err


def test_more_suggestions_than_labels(labelwood, model):
    few, many = (labelwood("predict", model, "a dog", "-k", k) for k in (4, 1_000_000_000))
    assert few.out == many.out


def test_labels_of_another_vocabulary_are_not_measured(labelwood, model, table, tmp_path):
    other = write(tmp_path / "other.csv", [("a dog", "gnd:1"), ("a court", "gnd:2")])
    for command in ("eval", "calibrate"):
        said = labelwood(command, model, other).complaint(1)
        assert "knows none of the 2 labels in" in said
        assert "labels there are like 'gnd:1', those of the model like 'animals'" in said
    assert labelwood("train", other, "-o", tmp_path / "foreign", "-q").code == 0
    said = labelwood("eval", model, table, "--compare", tmp_path / "foreign").complaint(1)
    assert "foreign knows none of the 4 labels in" in said
    mixed = write(tmp_path / "mixed.csv", [("a dog", "gnd:1"), ("a court", "law")])
    assert labelwood("eval", model, mixed).code == 0
