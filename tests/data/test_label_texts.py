"""Files of label texts: what is read, and which line is wrong."""

import gzip

import pytest

from labelwood.data import load_label_texts
from labelwood.errors import FormatError


@pytest.fixture
def read(tmp_path):
    def read(content):
        (tmp_path / "names.tsv").write_bytes(content)
        return load_label_texts(tmp_path / "names.tsv")

    return read


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("pets\tcats\tdogs\nlaw\ttax\n", {"pets": ["cats", "dogs"], "law": ["tax"]}),
        ("\ufeffpets\tcats\r\nlaw\ttax\r\n", {"pets": ["cats"], "law": ["tax"]}),
        ("pets\tcats", {"pets": ["cats"]}),
        ("pets\t cats \t\t\tdogs\t\n", {"pets": ["cats", "dogs"]}),
        ("pets\nlaw\t\n", {"pets": ["pets"], "law": []}),
        ("pets\tcats\nlaw\ttax\npets\tdogs\n", {"pets": ["cats", "dogs"], "law": ["tax"]}),
        ("\n \t \npets\tcats\n\n", {"pets": ["cats"]}),
        ("http://a/1\t動物\tЖивотные\n", {"http://a/1": ["動物", "Животные"]}),
        ("", {}),
    ],
    ids=["two", "BOM, CRLF", "no newline", "empty cells", "no texts", "one label twice", "blank", "scripts", "empty"],
)
def test_what_is_read(read, content, texts):
    assert read(content.encode()) == texts


def test_a_megabyte_in_one_cell(read):
    long = "word " * 250_000
    assert read(f"pets\t{long}\n".encode()) == {"pets": [long.strip()]}


def test_a_compressed_file(tmp_path):
    path = tmp_path / "names.tsv.gz"
    path.write_bytes(gzip.compress(b"pets\tcats\n"))
    assert load_label_texts(path) == {"pets": ["cats"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"pets\tcats\n\tdogs\n", r"names\.tsv, line 2: the first cell must be a label; got '\\tdogs'"),
        (b"pets\tcats\nlaw\t\xe4\n", r"names\.tsv, line 2: byte 0xE4 is not UTF-8"),
    ],
)
def test_the_error_names_the_line(read, content, message):
    with pytest.raises(FormatError, match=message):
        read(content)


def test_a_missing_file(tmp_path):
    with pytest.raises(FormatError, match=r"no\.tsv: no such file"):
        load_label_texts(tmp_path / "no.tsv")
