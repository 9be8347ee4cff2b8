"""Texts and label names from every format, and the one line said of a file that cannot be understood."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood import FormatError, LabelwoodError, data
from labelwood.label_names import name_problem

TEXTS = ["Cats, dogs", "Income tax law"]
LABELS = [["pets", "house animals"], ["law"]]


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("d.csv", 'text,labels\n"Cats, dogs",pets;house animals\nIncome tax law,law\n', {}),
        ("d.csv", "\ufefftext;tags\r\nCats, dogs;pets|house animals\r\nIncome tax law;law\r\n", {}),
        ("d.csv", 'id,Title,Subject\n1,"Cats, dogs","pets,house animals"\n2,Income tax law,law\n', {}),
        (
            "d.csv",
            'a,b\n"Cats, dogs",pets+house animals\nIncome tax law,law\n',
            {"text": "a", "labels": "b", "sep": "+"},
        ),
        ("d.tsv", "text\tlabels\nCats, dogs\tpets;house animals\nIncome tax law\tlaw\n", {}),
        (
            "d.jsonl",
            '{"text": "Cats, dogs", "tags": ["pets", "house animals"]}\n{"text": "Income tax law", "tags": "law"}',
            {},
        ),
        (
            "d.json",
            '[{"text": "Cats, dogs", "tags": "pets|house animals"}, {"text": "Income tax law", "tags": ["law"]}]',
            {},
        ),
        (
            "d.ndjson",
            '{"b": "Cats, dogs", "tags": "pets;house animals"}\n\n{"b": "Income tax law", "tags": "law"}\n',
            {"text": ["b"]},
        ),
        (
            "d.txt",
            '{"text": "Cats, dogs", "tags": ["pets", "house animals"]}\n{"text": "Income tax law", "tags": ["law"]}',
            {},
        ),
        ("d.unknown", 'text,labels\n"Cats, dogs",pets;house animals\nIncome tax law,law\n', {"format": "csv"}),
    ],
)
def test_tables(write, name, content, options):
    assert data.load_text(write(name, content), **options) == data.TextDataset(TEXTS, LABELS)


@pytest.mark.parametrize("name", ["d.tsv", "d.txt", "d.annif"])
def test_annif(write, name):
    path = write(name, "Cats, dogs\t<http://x/a> <http://x/b>\nIncome tax law\t<http://x/c>\nNone\t\n")
    found = data.load_text(path, format="annif" if name == "d.annif" else None)
    assert found.texts == [*TEXTS, "None"]
    assert found.labels == [["http://x/a", "http://x/b"], ["http://x/c"], []]


def test_annif_csv_cells_hold_uris(write):
    path = write("d.csv", 'text,subject_uris\nCats,"<http://x/a;1> <http://x/b,2>"\nTax,<http://x/c>\n')
    assert data.load_text(path).labels == [["http://x/a;1", "http://x/b,2"], ["http://x/c"]]


@pytest.mark.parametrize("name", ["d.ft", "d.txt"])
def test_fasttext(write, name):
    path = write(name, "__label__pets __label__house-animals cats and dogs\n__label__law tax law\nno label\n")
    found = data.load_text(path)
    assert found.texts == ["cats and dogs", "tax law", "no label"]
    assert found.labels == [["pets", "house-animals"], ["law"], []]


def test_plain_lines_with_a_file_of_labels(write):
    path = write("d.raw.txt", "Cats, dogs\nIncome tax law\n")
    names = write("names.txt", "pets;house animals\nlaw\n")
    assert data.load_text(path, labels=str(names)) == data.TextDataset(TEXTS, LABELS)
    write("labels.txt", "law\npets\nhouse animals\n")
    vectors = write("d.txt", "2 5 3\n1,2 0:1 4:0.5\n0 1:1\n")
    assert data.load_text(path, labels=str(vectors)) == data.TextDataset(TEXTS, LABELS)
    assert data.holds_text(path)
    assert data.holds_text(names)
    assert not data.holds_text(vectors)
    with pytest.raises(FormatError, match=r"has labels for 1 rows, but .*d.raw.txt has 2 lines"):
        data.load_text(path, labels=str(write("short.txt", "law and order\n")))


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet")
    parquet = pytest.importorskip("pyarrow.parquet")

    path = tmp_path / "d.parquet"
    table = {"id": [1, 2], "title": ["Cats", None], "body": ["dogs", "Tax"], "tags": [["a", "b"], None]}
    parquet.write_table(arrow.table(table), path)
    assert data.load_text(path) == data.TextDataset(["Cats\ndogs", "Tax"], [["a", "b"], []])
    path.write_bytes(b"not parquet")
    with pytest.raises(FormatError, match="not a Parquet file"):
        data.load_text(path)


def test_compressed_and_standard_input(write, monkeypatch):
    content = b"title,body,tags\nCats,and dogs,pets\n"
    wanted = data.TextDataset(["Cats\nand dogs"], [["pets"]])
    assert data.load_text(write("d.csv.gz", gzip.compress(content))) == wanted
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert data.load_text("-") == wanted


def test_texts_to_predict_need_no_labels(write):
    assert data.load_text(write("d.csv", "id,text\n1,Cats\n"), needs_labels=False) == data.TextDataset(["Cats"], None)
    path = write("d.txt", "one text\nanother\n")
    assert data.load_text(path, needs_labels=False).texts == ["one text", "another"]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "d.csv",
            "a,b,c\n1,2,3\n",
            {},
            r"cannot tell which column holds the labels; the columns are 'a', 'b', 'c'\. Pass --labels NAME\.",
        ),
        (
            "d.csv",
            "a,tags\n1,2\n",
            {},
            r"cannot tell which column holds the text; the columns are 'a', 'tags'\. Pass --text NAME,NAME\.",
        ),
        (
            "d.csv",
            "text,tags\n1,2\n",
            {"text": "heading"},
            r"there is no column 'heading'; the columns are 'text', 'tags'\. Choose with --text",
        ),
        ("d.csv", "text,tags\na,b\na,b,c\n", {}, r"d\.csv, line 3: 3 cells, but the first line names 2;"),
        ("d.csv", "text,text,tags\na,b,c\n", {}, "must name every column once"),
        ("d.csv", b"text,tags\n\xe4,b\n", {}, r"line 2: byte 0xE4 is not UTF-8; .*iconv"),
        ("d.csv", "text,tags\n", {}, "contains no texts"),
        ("d.csv", "", {}, "the file is empty"),
        ("d.jsonl", '{"text": "a", "tags": []}\n{"text": ', {}, r"line 2: not JSON \(.*\); got .*--format"),
        ("d.jsonl", '{"text": "a", "tags": []}\n[1]\n', {}, r"line 2: expected a JSON object .*got \[1\]"),
        ("d.jsonl", '{"text": "a", "tags": []}\n{"tags": []}\n', {}, r"line 2: has no 'text'; its keys are 'tags'"),
        ("d.jsonl", '{"text": {"a": 1}, "tags": []}\n', {}, r"line 1: the text must be a string; got \{'a': 1\}"),
        ("d.jsonl", '{"text": "a", "tags": {"b": 1}}\n', {}, r"row 1: labels must be a list of names or a string"),
        (
            "d.txt",
            "Just a line of text\n",
            {},
            "'Just a line of text' is plain text without labels; pass --labels FILE",
        ),
        ("d.txt", "Just a line of text\n", {"labels": "nowhere"}, "--labels nowhere is not a file"),
        ("d.tsv", "a\t<http://x>\nno tab\n", {}, r"line 2: no TAB between text and subjects"),
    ],
)
def test_what_cannot_be_understood_is_one_line(write, name, content, options, message):
    with pytest.raises(FormatError, match=message) as caught:
        data.load_text(write(name, content), **options)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_missing_files_and_formats(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        data.load_text(tmp_path / "d.csv")
    with pytest.raises(LabelwoodError, match=r"format must be one of 'jsonl'.*got 'xls'"):
        data.load_text(tmp_path / "d.xls", format="xls")


names = st.text(st.characters(codec="utf-8")).map(str.strip).filter(lambda name: name_problem(name) is None)
documents = st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.lists(names)), min_size=1)


@given(documents)
def test_json_lines_come_back_as_they_were(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("json") / "d.jsonl"
    lines = (json.dumps({"text": text, "labels": labels}, ensure_ascii=False) for text, labels in rows)
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    found = data.load_text(path)
    assert found.texts == [text for text, _ in rows]
    assert found.labels == [labels for _, labels in rows]
