"""Every command does its work and says so, to people and to machines."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labelwood import data as data_files
from labelwood import load
from labelwood.methods import METHODS
from labelwood.metrics import evaluate, inverse_propensities
from labelwood.params import declared
from labelwood.sparse import TopK

NAMES = ["zero", "one", "two words", 'quo"te', "co:lon", "five", "sechsundzwanzig", "été"]


@pytest.mark.parametrize("method", METHODS)
def test_train_predict_eval_info(labelwood, data, test_data, tmp_path, method):
    path = tmp_path / "model"
    trained = labelwood("train", data, "-o", path, "--method", method, "--random-state", 0, "--json").json
    assert (trained["rows"], trained["features"], trained["labels"]) == (120, 30, 8)
    assert trained["method"] == method
    assert trained["model_bytes"] == sum(file.stat().st_size for file in path.iterdir())
    assert trained["peak_memory_bytes"] > 1_000_000
    assert {"load", "save"} < trained["seconds"].keys()
    assert all(seconds >= 0 for seconds in trained["seconds"].values())

    predicted = labelwood("predict", path, test_data, "-k", 3, "--json")
    assert predicted.code == 0
    rows = [json.loads(line) for line in predicted.out.splitlines()]
    labels, scores = load(path).predict_topk(data_files.load(test_data).X, k=3)
    assert [row["labels"] for row in rows] == [[label for label in row if label >= 0] for row in labels.tolist()]
    found = np.concatenate([row["scores"] for row in rows])
    np.testing.assert_allclose(found, scores[labels >= 0], rtol=1e-6)

    measured = labelwood("eval", path, test_data, "--json", "--ks", "1,3").json
    truth = data_files.load(test_data).Y
    weights = inverse_propensities(load(path).label_counts_, 120)
    expected = evaluate(truth, TopK(labels, scores), ks=(1, 3), inv_propensity=weights)
    assert {"P@1", "P@3", "R@3", "nDCG@3", "PSP@1", "PSnDCG@3", "coverage@3", "macroF1@1"} <= expected.keys()
    for name, value in expected.items():
        assert measured[name] == pytest.approx(100 * value, abs=1e-5)
    assert measured["P@1"] > 80  # this data set is easy
    assert measured["rows"] == 40
    assert measured["by_frequency"].keys() >= {"head", "tail"}

    facts = labelwood("info", path, "--json").json
    assert facts["method"] == method
    assert facts["parameters"]["random_state"] == 0
    assert (facts["features"], facts["labels"], facts["trained"]["rows"]) == (30, 8, 120)
    assert facts["model_bytes"] == trained["model_bytes"]
    assert {name: facts[name] for name in load(path).describe()} == load(path).describe()


def test_linear_tree_reports_its_shape(labelwood, data, tmp_path):
    trained = labelwood("train", data, "-o", tmp_path / "model", "--json").json
    assert all(isinstance(trained[name], int) for name in ("depth", "nodes", "nonzero_weights"))


def test_output_for_people(labelwood, data, test_data, tmp_path):
    path = tmp_path / "model"
    trained = labelwood("train", data, "-o", path, "--random-state", 0)
    assert trained.code == 0
    assert trained.err.startswith(f"next: labelwood eval {path} held-out.txt\n")
    assert "nonzero_weights" in trained.out
    assert "peak memory" in trained.out
    table = labelwood("eval", path, test_data, "--ks", "1,5").out.splitlines()
    assert table[0].split() == ["percent", "@1", "95%", "@5", "95%"]
    measured = labelwood("eval", path, test_data, "--ks", "1,5", "--json").json
    assert table[1].split()[:2] == ["P", f"{measured['P@1']:.2f}"]
    assert f"{measured['P@5']:.2f}" in table[1].split()
    shown = labelwood("info", path).out
    assert "random_state" in shown
    assert "label_names" in shown
    assert ".npy" in shown


def test_predict_writes_names_as_single_words(labelwood, data, test_data, tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(NAMES) + "\n")
    path = tmp_path / "model"
    assert labelwood("train", data, "-o", path, "--random-state", 0).code == 0
    target = tmp_path / "out.txt"
    assert labelwood("predict", path, test_data, "-k", 8, "-o", target).out == ""
    lines = target.read_text().splitlines()
    assert len(lines) == 40
    decoder = json.JSONDecoder()
    for line in lines:
        rest, seen = line, []
        while rest:
            name, end = decoder.raw_decode(rest) if rest[0] == '"' else (rest.partition(":")[0], rest.index(":"))
            score, _, rest = rest[end + 1 :].partition(" ")
            seen.append(name)
            assert float(score) >= 0
        assert set(seen) <= set(NAMES)
    first = json.loads(labelwood("predict", path, test_data, "-k", 1, "--json").out.splitlines()[2])
    assert first["labels"] == ["two words"]


def test_eval_matches_labels_by_name(labelwood, data, test_data, tmp_path):
    """A test file may number the labels otherwise, and have one that the model never met."""
    (tmp_path / "labels.txt").write_text("\n".join(NAMES) + "\n")
    path = tmp_path / "model"
    assert labelwood("train", data, "-o", path, "--random-state", 0).code == 0
    same_order = labelwood("eval", path, test_data, "--json").json
    header, *rows = test_data.read_text().splitlines()
    turned = tmp_path / "turned"
    turned.mkdir()
    (turned / "labels.txt").write_text("\n".join(["never seen", *reversed(NAMES)]) + "\n")
    lines = []
    for row in rows:
        labels, _, features = row.partition(" ")
        lines.append(",".join(str(8 - int(label)) for label in labels.split(",")) + " " + features)
    lines[0] = "0," + lines[0]
    (turned / "test.txt").write_text("\n".join([header[:-1] + "9", *lines]) + "\n")
    other_order = labelwood("eval", path, turned / "test.txt", "--json").json
    assert [other_order[f"P@{k}"] for k in (1, 3, 5)] == [same_order[f"P@{k}"] for k in (1, 3, 5)]
    assert other_order["R@5"] < same_order["R@5"]
    assert other_order["by_frequency"]["unseen"]["labels"] == 1


def test_label_names_given_and_refused(labelwood, data, test_data, tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(NAMES) + "\n")
    other = tmp_path / "others.txt"
    other.write_text("\n".join("abcdefgh") + "\n")
    for given, expected in ((other, {"c"}), ("none", {2}), (None, {"two words"})):
        words = () if given is None else ("--label-names", given)
        path = tmp_path / "model"
        assert labelwood("train", data, "-o", path, *words).code == 0
        (tmp_path / "labels.txt").write_text("of other data\n")  # the names beside a test file play no part
        row = json.loads(labelwood("predict", path, test_data, "-k", 1, "--json").out.splitlines()[2])
        assert set(row["labels"]) == expected
        (tmp_path / "labels.txt").write_text("\n".join(NAMES) + "\n")


def test_threads_do_not_change_the_answer(labelwood, data, test_data, tmp_path):
    answers = []
    for n_jobs in (1, 2):
        path = tmp_path / f"model{n_jobs}"
        assert labelwood("train", data, "-o", path, "--random-state", 7, "--n-jobs", n_jobs).code == 0
        answers.append(labelwood("predict", path, test_data, "--n-jobs", 3 - n_jobs).out)
    assert answers[0] == answers[1] != ""


def test_training_again_replaces_the_model(labelwood, data, model):
    assert labelwood("info", model, "--json").json["parameters"]["random_state"] == 0
    assert labelwood("train", data, "-o", model, "--random-state", 5).code == 0
    assert labelwood("info", model, "--json").json["parameters"]["random_state"] == 5


@pytest.mark.parametrize("suffix", [".npz", ".svm", ".xmc.gz", ".txt.xz", ".svmlight.bz2"])
def test_convert_there_and_back(labelwood, data, tmp_path, suffix):
    there = tmp_path / f"there{suffix}"
    facts = labelwood("convert", data, there, "--json").json
    assert (facts["rows"], facts["features"], facts["labels"]) == (120, 30, 8)
    assert facts["bytes"] == there.stat().st_size
    assert labelwood("convert", there, tmp_path / "back.npz").code == 0
    before, after = data_files.load(data), data_files.load(tmp_path / "back.npz")
    for one, other in ((before.X, after.X), (before.Y, after.Y)):
        np.testing.assert_array_equal(one.indptr, other.indptr)
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.data, other.data)


def test_convert_with_formats_given(labelwood, data, tmp_path):
    nameless = tmp_path / "data"
    assert labelwood("convert", data, nameless, "--to", "npz").code == 0
    assert labelwood("convert", nameless, tmp_path / "back.txt", "--from", "npz").code == 0
    assert data_files.load(tmp_path / "back.txt").X.nnz == data_files.load(data).X.nnz


def test_methods(labelwood):
    listed = labelwood("methods")
    facts = labelwood("methods", "--json").json
    assert list(facts) == list(METHODS)
    for name, cls in METHODS.items():
        assert name in listed.out
        assert facts[name]["class"] == cls.__name__
        assert list(facts[name]["parameters"]) == list(declared(cls))
        assert all(parameter["help"] for parameter in facts[name]["parameters"].values())
