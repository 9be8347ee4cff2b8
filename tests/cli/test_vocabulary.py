"""``labelwood vocabulary`` and names of a vocabulary in the other commands."""

import json

import pytest
from animals import ANIMALS, EX

from labelwood.cli import main
from labelwood.vocabulary import Vocabulary, load_vocabulary, save_vocabulary


@pytest.fixture
def animals_csv(tmp_path):
    save_vocabulary(Vocabulary.of(ANIMALS), tmp_path / "animals.csv")
    return str(tmp_path / "animals.csv")


def run(capsys, *words):
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_show_counts_and_concepts(capsys, animals_csv):
    _, out, _ = run(capsys, "vocabulary", "show", animals_csv, "--json")
    facts = json.loads(out)
    assert (facts["concepts"], facts["deprecated"], facts["languages"]) == (7, 3, ["en", "fi"])
    _, out, _ = run(capsys, "vocabulary", "show", animals_csv, "eläin", "--language", "en", "--json")
    shown = json.loads(out)
    assert shown["uri"] == EX + "animal"
    assert shown["narrower"] == [f"cat <{EX}cat>", f"dog <{EX}dog>"]


def test_convert_and_back(capsys, animals_csv, tmp_path):
    assert run(capsys, "vocabulary", "convert", animals_csv, tmp_path / "animals.tsv")[0] == 0
    assert load_vocabulary(tmp_path / "animals.tsv") == Vocabulary.of(ANIMALS)


def test_errors_are_one_line(capsys, animals_csv, tmp_path):
    code, _, err = run(capsys, "vocabulary", "show", animals_csv, "kissat")
    assert (code, err) == (1, "labelwood: vocabulary: there is no concept 'kissat'; did you mean kissa?\n")
    code, _, err = run(capsys, "vocabulary", "convert", animals_csv)
    assert (code, err) == (2, "labelwood vocabulary: convert takes FILE and NEW; got 1 words\n")
    (tmp_path / "bad.csv").write_text("uri,label\na,b,c\n")
    code, _, err = run(capsys, "vocabulary", "show", tmp_path / "bad.csv")
    assert (code, err) == (1, f"labelwood: {tmp_path}/bad.csv, line 2: 3 cells, but 2 columns\n")
