"""Vocabularies in tables: ours, Annif's, lines of names, and malformed ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood.errors import FormatError, LabelwoodError
from labelwood.vocabulary import Vocabulary, load_vocabulary, read_vocabulary, save_vocabulary
from labelwood.vocabulary.concept import ALTERNATIVE, LINK_KINDS, NOTATION, PREFERRED, Concept, Link, Text


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.xz"])
def test_a_table_holds_everything(animals, tmp_path, suffix):
    path = tmp_path / f"animals{suffix}"
    save_vocabulary(animals, path)
    assert load_vocabulary(path) == animals


def test_annif_csv(tmp_path):
    path = tmp_path / "subjects.csv"
    path.write_text("uri,notation,label_fi,label_en\nhttp://x/1,42.7,kissa,cat\nhttp://x/2,,,\n", "utf-8-sig")
    found = load_vocabulary(path)
    assert found.name(0, "fi") == "kissa"
    assert found.texts_of(0, [NOTATION]) == ["42.7"]
    assert found.deprecated.tolist() == [0, 1], "Annif keeps a removed subject without names"


def test_annif_tsv(tmp_path):
    path = tmp_path / "subjects.tsv"
    path.write_text("<http://x/1>\tkissa\t42.7\n<http://x/2>\tkoira\n")
    found = load_vocabulary(path, language="fi")
    assert (found.name(0, "fi"), found.languages) == ("kissa", ["", "fi"])
    assert found.texts_of(0, [NOTATION]) == ["42.7"]
    assert [found.uri(0), found.uri(1)] == ["http://x/1", "http://x/2"]


def test_lines_of_a_label_and_its_names(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("law\tlegislation\tstatutes\nlaw\tacts\nmoney\n")
    found = load_vocabulary(path)
    assert found.texts_of(found.find("law")) == ["acts", "legislation", "statutes"]
    assert found.name(found.find("money")) is None


def test_columns_are_named_for_a_file_without_a_header(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("yso:p3\tviihdekirjallisuus\ta|b\tlight reading\t\t167\n")
    columns = ["uri", "label_fi", "alt_fi", "label_en", "label_sv", "count"]
    found = load_vocabulary(path, columns=columns)
    assert found.name(0, "en") == "light reading"
    assert found.texts_of(0, [ALTERNATIVE], "fi") == ["a", "b"]
    assert found.languages == ["en", "fi"]
    with pytest.raises(FormatError, match="a column must be named uri; got label_fi"):
        load_vocabulary(path, columns=["label_fi"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.csv", "", "the file is empty"),
        ("v.tsv", "\n\n", "the file is empty"),
        ("v.csv", "http://x/1,cat\n", "line 1: a CSV file must begin with the names of its columns"),
        ("v.csv", 'uri,label\na,"b\n', "line 2: unexpected end of data"),
        ("v.csv", "uri,label\na,b,c\n", "line 2: 3 cells, but 2 columns"),
        ("v.csv", "uri,label\n,b\n", "line 2: a URI must have 1 to 1000 characters; got 0"),
        ("v.csv", "uri,label_x y\na,b\n", "line 1, column label_x y: a language must be a tag"),
        ("v.csv", "uri,deprecated\na,perhaps\n", "line 2: deprecated must be 1 or 0; got 'perhaps'"),
        ("v.csv", "uri,label\na," + "x" * 1_000_000 + "\n", "line 2: a preferred name must have 1 to 1000 char"),
        ("v.csv", "uri,label\na," + "x" * 2_000_000 + "\n", "line 2: field larger than field limit"),
        ("v.tsv", "a\tx\nb\ty\x00z\n", "line 2: a preferred name must not contain control characters"),
        ("v.tsv", "<http://x/1\tcat\n", "line 1: a URI must end with >"),
        ("v.tsv", "a" * 1001 + "\tcat\n", "line 1: a URI must have 1 to 1000 characters; got 1001"),
    ],
)  # fmt: skip
def test_a_malformed_table_is_refused_with_its_place(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError) as error:
        load_vocabulary(tmp_path / name)
    assert str(error.value).startswith(str(tmp_path / name))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["v.csv", "v.tsv"])
def test_bytes_that_are_not_utf8(tmp_path, name):
    (tmp_path / name).write_bytes(b"uri\tlabel\nb\t\xff\n" if name == "v.tsv" else b"uri,label\nb,\xff\n")
    with pytest.raises(FormatError, match="line 2: not UTF-8"):
        load_vocabulary(tmp_path / name)


def test_odd_but_readable_tables_are_remarked_on(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("uri,label_en,broader\na,x,b\na,y,\nb,,a\n")
    found = read_vocabulary(path)
    assert found.vocabulary.name(0) == "x"
    assert found.vocabulary.texts_of(0, [ALTERNATIVE]) == ["y"]
    told = " ".join(found.remarks)
    assert "1 preferred names stand beside another one" in told
    assert "2 concepts are broader than themselves, such as a" in told


def test_an_unknown_suffix_and_a_missing_file(tmp_path):
    with pytest.raises(LabelwoodError, match=r"must be told by one of \.csv"):
        load_vocabulary(tmp_path / "v.doc")
    with pytest.raises(FormatError, match="no such file"):
        load_vocabulary(tmp_path / "v.csv")


def test_a_key_with_a_tab_needs_csv(tmp_path):
    odd = Vocabulary.of([Concept("3\tadhesive", (Text(PREFERRED, "en", "adhesive"),))])
    with pytest.raises(LabelwoodError, match="a key with a tab needs CSV"):
        save_vocabulary(odd, tmp_path / "v.tsv")
    save_vocabulary(odd, tmp_path / "v.csv")
    assert load_vocabulary(tmp_path / "v.csv") == odd


def test_a_key_keeps_its_own_brackets(tmp_path):
    odd = Vocabulary.of(
        [Concept("<>"), Concept("<a>", links=(Link(LINK_KINDS.index("broader"), "<>"),)), Concept("<b")]
    )
    for name in ("v.csv", "v.tsv"):
        save_vocabulary(odd, tmp_path / name)
        assert load_vocabulary(tmp_path / name) == odd


names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, st.lists(st.tuples(st.sampled_from([0, 1, 2, 4]), st.sampled_from(["", "fi"]), names))))
def test_any_vocabulary_comes_back_from_csv(tmp_path_factory, found):
    concepts = [Concept(uri, tuple(Text(*text) for text in texts)) for uri, texts in found.items()]
    vocabulary = Vocabulary.of(concepts)
    path = tmp_path_factory.mktemp("table") / "v.csv"
    save_vocabulary(vocabulary, path)
    if len(vocabulary):
        assert load_vocabulary(path) == vocabulary
