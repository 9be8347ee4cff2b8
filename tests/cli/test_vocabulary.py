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


TEXTS = ["cats purr and meow", "a cat sleeps", "dogs bark", "the dog fetches", "a hound hunts", "fish swim in water"]
LABELS = ["cat", "cat", "dog", "dog", "hound", "fish"]


@pytest.fixture
def documents(tmp_path):
    rows = "".join(f"{text},{EX}{label}\n" for text, label in zip(TEXTS * 3, LABELS * 3, strict=True))
    (tmp_path / "docs.csv").write_text("text,labels\n" + rows + f"a beast,{EX}beast\nstrange,{EX}other\n")
    return tmp_path / "docs.csv"


@pytest.fixture
def model(capsys, documents, animals_csv, tmp_path):
    code, _, err = run(capsys, "train", documents, "-o", tmp_path / "model", "--vocabulary", animals_csv)
    assert code == 0, err
    assert (
        "vocabulary of 7 concepts: 1 deprecated labels were replaced, 1 deprecated labels without a replacement were "
        "left out, 1 labels are not in the vocabulary" in err
    )
    return tmp_path / "model"


def test_predict_shows_names_in_a_language(capsys, model):
    _, out, _ = run(capsys, "predict", model, "a cat sleeps", "-k", "1", "--language", "fi")
    assert out.startswith(f'"kissa <{EX}cat>":')
    _, out, _ = run(capsys, "predict", model, "a hound hunts", "-k", "2", "--json")
    found = json.loads(out)
    assert (found["labels"][0], found["names"][0]) == (EX + "dog", "dog"), "the replacement of hound"
    _, out, _ = run(capsys, "predict", model, "strange", "-k", "1", "--csv")
    assert out.splitlines()[0] == "text,label_1,name_1,score_1"
    assert out.splitlines()[1].startswith(f"strange,{EX}other,,")
    code, _, err = run(capsys, "predict", model, "a cat", "--language", "sv")
    assert (code, err) == (1, "labelwood: language must be one of en, fi; got 'sv'\n")


def test_explain_tree_labels_and_info_show_names(capsys, model, tmp_path):
    _, out, _ = run(capsys, "explain", model, "a cat sleeps", "-k", "1", "--language", "fi", "--missed", "dog")
    assert out.startswith(f"kissa <{EX}cat>  ")
    assert f"dog <{EX}dog>: place" in out
    _, out, _ = run(capsys, "explain", model, "a cat sleeps", "-k", "1", "--json")
    assert json.loads(out)["names"][EX + "cat"] == "cat"
    _, out, _ = run(capsys, "tree", model, "--json", "--language", "fi")
    drawn = json.loads(out)
    assert drawn["label_names"][drawn["label_uris"].index(EX + "cat")] == "kissa"
    _, out, _ = run(capsys, "labels", model, "list")
    assert f"cat <{EX}cat>" in out
    _, out, _ = run(capsys, "labels", model, "list", "--json", "--language", "fi")
    assert "kissa" in [entry["concept"] for entry in json.loads(out)]
    _, out, _ = run(capsys, "info", model, "--json")
    assert json.loads(out)["vocabulary"]["concepts"] == 7


def test_eval_maps_deprecated_labels_of_the_truth(capsys, model, documents, tmp_path):
    _, out, _ = run(
        capsys, "eval", model, documents, "--json", "--per-label", tmp_path / "labels.csv", "--language", "fi"
    )
    assert json.loads(out)["P@1"] > 90
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0].startswith("label,name,bin")
    assert any(line.startswith(f"{EX}cat,kissa,") for line in lines)
    assert not any("hound" in line or "beast" in line for line in lines)


def test_label_texts_come_from_the_vocabulary(capsys, documents, animals_csv, tmp_path):
    words = ("train", documents, "-o", tmp_path / "named", "--vocabulary", animals_csv)
    assert run(capsys, *words, "--label-texts", "vocabulary")[0] == 0
    _, out, _ = run(capsys, "predict", tmp_path / "named", "eläin", "-k", "1", "--json")
    assert json.loads(out)["labels"] == [EX + "animal"], "a concept that no row has"
    code, _, err = run(capsys, "train", documents, "-o", tmp_path / "m", "--label-texts", "vocabulary")
    assert (code, err) == (2, "labelwood train: --label-texts vocabulary needs --vocabulary FILE\n")


def test_a_model_without_a_vocabulary_has_no_languages(capsys, documents, tmp_path):
    assert run(capsys, "train", documents, "-o", tmp_path / "plain")[0] == 0
    code, _, err = run(capsys, "predict", tmp_path / "plain", "a cat", "--language", "fi")
    assert code == 1
    assert err == "labelwood: language: the model has no vocabulary to take names from; train with --vocabulary FILE\n"
    code, _, err = run(capsys, "vocabulary", "show", tmp_path / "plain")
    assert err == f"labelwood: {tmp_path}/plain: the model has no vocabulary; train with --vocabulary, or update it\n"


NEW = f"""uri,label_en,deprecated,replaced_by
{EX}animal,animal,,
{EX}cat,house cat,,
{EX}dog,dog,1,{EX}canine
{EX}canine,canine,,
{EX}fish,fish,1,
{EX}llama,llama,,
"""


def test_update_renames_retires_and_adds_without_retraining(capsys, model, tmp_path):
    (tmp_path / "new.csv").write_text(NEW)
    before = {path.name: path.stat().st_ino for path in model.iterdir()}
    code, out, err = run(capsys, "vocabulary", "update", model, tmp_path / "new.csv", "--json")
    assert code == 0, err
    changes = json.loads(out)
    assert changes["added"] == [EX + "canine", EX + "llama"]
    assert EX + "cat" in changes["renamed"]
    assert set(changes["deprecated"]) == {EX + "dog", EX + "fish"}
    assert (changes["labels_renamed"], changes["labels_merged"], changes["labels_retired"]) == (1, 0, 1)
    after = {path.name: path.stat().st_ino for path in model.iterdir()}
    same = {name for name in before if before[name] == after.get(name)}
    touched = {name for name in after if name not in same}
    assert touched
    assert all(name.startswith(("vocabulary.", "label_names.", "manifest")) for name in touched)
    _, out, _ = run(capsys, "predict", model, "dogs bark", "-k", "3", "--json")
    assert json.loads(out)["labels"][0] == EX + "canine"
    _, out, _ = run(capsys, "predict", model, "fish swim in water", "-k", "4", "--json")
    assert EX + "fish" not in json.loads(out)["labels"]
    _, out, _ = run(capsys, "predict", model, "a cat", "-k", "1", "--json")
    assert json.loads(out)["names"] == ["house cat"]
    _, out, _ = run(capsys, "labels", model, "list", "--json")
    states = {entry["name"]: entry["state"] for entry in json.loads(out)}
    assert states[EX + "fish"] == "retired"
    _, out, _ = run(capsys, "vocabulary", "update", model, tmp_path / "new.csv")
    assert "added: 0 concepts" in out
    assert "labels of the model: 0 renamed, 0 merged, 0 retired" in out


def test_an_online_model_learns_added_concepts_by_name(capsys, documents, animals_csv, tmp_path):
    model = tmp_path / "online"
    words = ("train", documents, "-o", model, "--vocabulary", animals_csv, "--method", "online-tree")
    assert run(capsys, *words, "--encoder", "hashing")[0] == 0
    (tmp_path / "new.csv").write_text(NEW)
    assert run(capsys, "vocabulary", "update", model, tmp_path / "new.csv", "--learn-names")[0] == 0
    _, out, _ = run(capsys, "predict", model, "llama", "-k", "9", "--json")
    assert "llama" in json.loads(out)["names"]
    _, out, _ = run(capsys, "predict", model, "fish swim in water", "-k", "5", "--json")
    assert EX + "fish" not in json.loads(out)["labels"]
    (tmp_path / "more.csv").write_text(f"text,labels\nthe dog barks,{EX}dog\n")
    assert run(capsys, "learn", model, tmp_path / "more.csv")[0] == 0
    _, out, _ = run(capsys, "labels", model, "list", "--json")
    assert EX + "dog" not in [entry["name"] for entry in json.loads(out)], "learned as canine"


def test_eval_reports_hierarchical_figures_and_near_misses(capsys, model, documents, tmp_path):
    _, out, _ = run(capsys, "eval", model, documents, "--json", "--per-label", tmp_path / "labels.csv")
    found = json.loads(out)
    assert found["hF1@1"] >= found["P@1"] - 1
    assert set(found) >= {"hP@5", "hR@5", "hF1@5", "near@5"}
    assert (tmp_path / "labels.csv").read_text().splitlines()[0].endswith(",f1,near_misses")
    _, out, _ = run(capsys, "eval", model, documents)
    assert "hF1" in out
    assert "share of the first k labels that are wrong, but a parent or a child of a right one" in out


def test_predict_rolls_up(capsys, model, documents, tmp_path):
    _, out, _ = run(capsys, "predict", model, "a cat and a dog", "-k", "3", "--roll-up", "0.05", "--json")
    assert EX + "cat" in json.loads(out)["labels"]
    text = "a cat sleeps and a dog fetches"
    _, out, _ = run(capsys, "predict", model, text, "-k", "9", "--json")
    plain = json.loads(out)
    score = dict(zip(plain["names"], plain["scores"], strict=True))
    below = [score["cat"], score["dog"]]
    least = 1 - (1 - below[0]) * (1 - below[1])
    assert max(below) < least < 1
    words = ("--roll-up", f"{(max(below) + least) / 2:.4f}")
    _, out, _ = run(capsys, "predict", model, text, *words, "--json")
    assert json.loads(out)["names"] == ["animal"]
    code, _, err = run(capsys, "predict", model, text, *words, "--decide")
    assert (code, "--decide has no effect" in err) == (2, True)
    assert run(capsys, "train", documents, "-o", tmp_path / "plain")[0] == 0
    code, _, err = run(capsys, "predict", tmp_path / "plain", "a cat", "--roll-up", "0.5")
    assert (code, "needs a model whose vocabulary has broader concepts" in err) == (2, True)


def test_a_vocabulary_of_other_uris_is_refused(capsys, animals_csv, tmp_path):
    (tmp_path / "other.csv").write_text("text,labels\n" + "a cat,gnd:1\na dog,gnd:2\n" * 3)
    code, _, err = run(
        capsys, "train", tmp_path / "other.csv", "-o", tmp_path / "new", "--vocabulary", animals_csv, "-q"
    )
    assert code == 1
    assert "it has none of the 2 labels; labels are like 'gnd:1', concepts like '" in err


def test_the_language_of_names_is_not_chosen_at_training(capsys, documents, animals_csv, tmp_path):
    words = ("train", documents, "-o", tmp_path / "new", "--vocabulary", animals_csv, "--language", "fi")
    code, _, err = run(capsys, *words, "-q")
    assert code == 2
    assert "--language has no effect: it is the language of --words stems" in err
    pytest.importorskip("Stemmer", reason="PyStemmer is not installed")
    assert run(capsys, *words, "--words", "stems", "-q")[0] == 0


def test_missed_labels_by_name(capsys, model):
    code, out, _ = run(capsys, "explain", model, "a cat sleeps", "-k", "1", "--missed", "dog")
    assert (code, f"dog <{EX}dog>" in out) == (0, True)
    code, _, err = run(capsys, "explain", model, "a cat sleeps", "--missed", "kissu")
    assert (code, "there is no label 'kissu'; did you mean kissa?" in err) == (1, True)
    code, _, err = run(capsys, "explain", model, "a cat sleeps", "--missed", "eläin")
    assert code == 1
    assert f"animal <{EX}animal> is in the vocabulary, but no training row has this label" in err
