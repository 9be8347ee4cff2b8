"""--vectors: a file of vectors beside texts, in every command that reads texts."""

from __future__ import annotations

import json

import numpy as np
import pytest

ROWS = [
    ("cats and dogs", "pets", 0),
    ("the dog barks", "pets;noise", 0),
    ("income tax", "law", 1),
    ("tax court", "law;money", 1),
] * 5
WIDTH = 4


def vectors(sides):
    found = np.full((len(sides), WIDTH), 0.1, np.float32)
    found[np.arange(len(sides)), sides] = 1
    return found


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.csv"
    path.write_text("title,tags\n" + "".join(f"{title},{tags}\n" for title, tags, _ in ROWS))
    np.save(tmp_path / "docs.npy", vectors([side for _, _, side in ROWS]))
    return path


@pytest.fixture
def model(labelwood, docs, tmp_path):
    path = tmp_path / "model"
    found = labelwood("train", docs, "--vectors", tmp_path / "docs.npy", "-o", path, "--random-state", 0, "--json").json
    assert found["encoder"] == "vectors"
    return path


@pytest.fixture
def unknown(tmp_path):
    """Texts of unknown words: only their vectors tell the labels."""
    (tmp_path / "more.txt").write_text("xxx yyy\nyyy xxx\n")
    np.save(tmp_path / "more.npy", vectors([1, 0]))
    return tmp_path / "more.txt", "--vectors", tmp_path / "more.npy"


def test_from_texts_with_vectors_to_suggestions(labelwood, model, unknown, docs, tmp_path):
    found = labelwood("predict", model, *unknown, "-k", 1, "--json").out.splitlines()
    assert [json.loads(line)["labels"] for line in found] == [["law"], ["pets"]]
    assert labelwood("eval", model, docs, "--vectors", tmp_path / "docs.npy", "--json").json["P@1"] == 100
    assert labelwood("info", model, "--json").json["encoder"]["name"] == "vectors"


def test_what_to_do_next_names_vectors(labelwood, docs, tmp_path):
    told = labelwood("train", docs, "--vectors", tmp_path / "docs.npy", "-o", tmp_path / "next").err
    assert "predict" in told
    assert told.count("--vectors") == 3


def test_a_literal_text_with_its_vector(labelwood, model, tmp_path):
    np.save(tmp_path / "one.npy", vectors([1]))
    assert labelwood("predict", model, "xxx yyy", "--vectors", tmp_path / "one.npy", "-k", 1).out.startswith("law:")
    told = labelwood("explain", model, "my dog", "--vectors", tmp_path / "one.npy", "-k", 1).out
    assert "vector[1]" in told


def test_explain_picks_the_vector_of_the_row(labelwood, model, unknown):
    for row, label in ((1, "law"), (2, "pets")):
        told = labelwood("explain", model, *unknown, "--row", row, "-k", 1, "--json").json
        assert told["suggestions"][0]["label"] == label


def test_csv_output_repeats_the_columns(labelwood, model, docs, tmp_path):
    found = labelwood("predict", model, docs, "--vectors", tmp_path / "docs.npy", "--csv", "-k", 1).out.splitlines()
    assert found[0] == "title,tags,label_1,score_1"
    assert len(found) == len(ROWS) + 1


def test_split_keeps_vectors_beside_their_texts(labelwood, docs, tmp_path):
    np.save(tmp_path / "docs.npy", np.arange(len(ROWS), dtype=np.float16)[:, None])
    (tmp_path / "numbered.csv").write_text("text\n" + "".join(f"{row}\n" for row in range(len(ROWS))))
    for source, ending in ((tmp_path / "numbered.csv", "csv"), (tmp_path / "docs.npy", "npy")):
        parts = [tmp_path / f"{part}.{ending}" for part in ("train", "held_out")]
        found = labelwood("split", source, *parts, "--share", 0.25, "--seed", 1, "--json").json
        assert (found["train"]["rows"], found["held_out"]["rows"]) == (15, 5)
    for part in ("train", "held_out"):
        vectors = np.load(tmp_path / f"{part}.npy")
        assert vectors.dtype == np.float16
        assert (tmp_path / f"{part}.csv").read_text().split()[1:] == [str(int(row)) for row in vectors[:, 0]]
    told = labelwood("split", tmp_path / "docs.npy", tmp_path / "a.npy", tmp_path / "b.csv").complaint(1)
    assert "b.csv must end in .npy" in told
    assert not (tmp_path / "a.npy").exists()


def test_files_follow_each_other(labelwood, docs, tmp_path):
    np.save(tmp_path / "twice.npy", vectors([side for _, _, side in ROWS] * 2))
    found = labelwood("train", docs, docs, "--vectors", tmp_path / "twice.npy", "-o", tmp_path / "two", "--json").json
    assert found["rows"] == 2 * len(ROWS)


@pytest.mark.parametrize("command", ["calibrate", "shrink"])
def test_commands_that_measure(labelwood, model, docs, tmp_path, command):
    assert labelwood(command, model, docs, "--vectors", tmp_path / "docs.npy").code == 0


def test_estimate_auto_and_other_methods(labelwood, docs, tmp_path):
    given = [docs, "--vectors", tmp_path / "docs.npy"]
    assert labelwood("estimate", *given, "--json").json["method"] == "linear-tree"
    for method in ("auto", "one-vs-rest", "craft-forest", "ranker"):
        assert labelwood("train", *given, "-o", tmp_path / method, "--method", method).code == 0
        words = ["predict", tmp_path / method, *given, "-k", 1]
        assert len(labelwood(*words).out.splitlines()) == len(ROWS)


def test_a_stream_learns_texts_with_vectors(labelwood, docs, tmp_path):
    given = [docs, "--vectors", tmp_path / "docs.npy"]
    assert labelwood("train", *given, "-o", tmp_path / "grows", "--method", "online-tree").code == 0
    assert labelwood("learn", tmp_path / "grows", *given).code == 0


def test_the_width_is_remembered(labelwood, model, docs, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((len(ROWS), WIDTH + 1), np.float32))
    told = labelwood("predict", model, docs, "--vectors", tmp_path / "wide.npy").complaint(1)
    assert f"vectors must have {WIDTH} columns; got {WIDTH + 1}" in told


def test_a_model_of_vectors_says_that_it_needs_them(labelwood, model, docs):
    for words in (["predict", model, docs], ["predict", model, "my dog"], ["eval", model, docs]):
        assert "--vectors FILE" in labelwood(*words).complaint(1)


def test_a_model_without_vectors_refuses_them(labelwood, docs, tmp_path):
    assert labelwood("train", docs, "-o", tmp_path / "plain").code == 0
    told = labelwood("predict", tmp_path / "plain", docs, "--vectors", tmp_path / "docs.npy").complaint(1)
    assert "reads texts without vectors" in told


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda E: E[:-1], "19 vectors for 20 texts"),
        (lambda E: E.astype(np.float64), "must be float32 or float16; got float64"),
        (np.asfortranarray, "Fortran order"),
        (lambda E: E[:, :0], "at least one row and one column"),
        (lambda E: E[:0], "at least one row and one column"),
        (np.ravel, "vectors must be two-dimensional"),
        (lambda E: E * np.nan, "vectors must be finite"),
        (lambda E: E * np.inf, "vectors must be finite"),
    ],
)
def test_bad_files_are_refused_in_one_line(labelwood, model, docs, tmp_path, damage, message):
    np.save(tmp_path / "bad.npy", damage(np.load(tmp_path / "docs.npy")))
    told = labelwood("train", docs, "--vectors", tmp_path / "bad.npy", "-o", tmp_path / "new").complaint(1)
    assert message in told
    assert not (tmp_path / "new").exists()
    assert message in labelwood("predict", model, docs, "--vectors", tmp_path / "bad.npy").complaint(1)


def test_a_file_cut_short_and_no_file(labelwood, docs, tmp_path):
    content = (tmp_path / "docs.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(content[:-7])
    told = labelwood("train", docs, "--vectors", tmp_path / "cut.npy", "-o", tmp_path / "new").complaint(1)
    assert "is no whole .npy file" in told
    told = labelwood("train", docs, "--vectors", tmp_path / "none.npy", "-o", tmp_path / "new").complaint(1)
    assert "none.npy" in told


def test_where_vectors_have_no_place(labelwood, model, data, docs, tmp_path):
    words = ["train", data, "--vectors", tmp_path / "docs.npy", "-o", tmp_path / "new"]
    assert "--vectors has no effect: it is for texts" in labelwood(*words).complaint(2)
    words = ["predict", model, "-", "--vectors", tmp_path / "docs.npy", "--format", "lines"]
    assert "without vectors" in labelwood(*words).complaint(2)
    words = ["predict", model, docs, "--vectors", tmp_path / "docs.npy", "--executor", "ray"]
    assert "without --executor" in labelwood(*words).complaint(2)
