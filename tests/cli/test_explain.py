"""``labelwood explain``: readable lines, the same as JSON, and one line about what is wrong."""

import pytest

from labelwood import METHODS

TEXTS = ["cats and dogs", "the dog barks", "tax law of the land", "income tax law"] * 5
TAGS = ["pets", "pets", "law", "law;money"] * 5


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.csv"
    rows = "".join(f"{text},{tags}\n" for text, tags in zip(TEXTS, TAGS, strict=True))
    path.write_text("text,tags\n" + rows)
    return path


@pytest.mark.parametrize("method", list(METHODS))
def test_words_and_reasons(labelwood, docs, tmp_path, method):
    model = tmp_path / "model"
    assert labelwood("train", docs, "-o", model, "--method", method).code == 0
    words = ("explain", model, "my dog and the tax", "-k", 1, "--missed", "money")
    shown = labelwood(*words)
    assert shown.code == 0, shown.err
    assert "dog" in shown.out
    assert "money: " in shown.out
    found = labelwood(*words, "--json").json
    assert len(found["suggestions"]) == 1
    assert found["missed"][0]["label"] == "money"
    assert shown.out.startswith(found["suggestions"][0]["label"])


def test_a_row_of_a_file(labelwood, model, test_data, docs, tmp_path):
    first = labelwood("explain", model, test_data, "--json").json
    other = labelwood("explain", model, test_data, "--row", 2, "--json").json
    assert first != other
    assert first["suggestions"][0]["label"] == 0
    assert "labelwood explain: --row takes a row" in labelwood("explain", model, test_data, "--row", 4000).complaint(2)
    texts = tmp_path / "texts"
    assert labelwood("train", docs, "-o", texts).code == 0
    assert "pets" in labelwood("explain", texts, docs, "--row", 2).out


def test_an_unknown_label(labelwood, model, test_data):
    assert "there is no label 'zebra'" in labelwood("explain", model, test_data, "--missed", "zebra").complaint(1)


def test_a_text_without_a_known_word(labelwood, docs, tmp_path):
    assert labelwood("train", docs, "-o", tmp_path / "model").code == 0
    shown = labelwood("explain", tmp_path / "model", "zebra crossing").out
    assert shown.startswith("the model knows no word or feature of this input; ")
    assert "did you mean money?" in labelwood("explain", tmp_path / "model", "tax law", "--missed", "monney").complaint(
        1
    )
