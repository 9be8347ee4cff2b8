"""The commands around models that learn from a stream: train, learn from files and pipes, labels, generated data."""

import io
import json

import numpy as np
import pytest
from sklearn.base import clone

import labelwood as package
from labelwood.data import load

PARAMETERS = {
    "online-tree": ("--max-leaf", 4),
    "online-forest": ("--n-trees", 2, "--tree", '{"max_leaf": 4}'),
    "living-tree": ("--refit-rows", 50, "--online", '{"max_leaf": 4}'),
}


@pytest.fixture(params=PARAMETERS)
def online(request, labelwood, data, tmp_path):
    """A growing model trained on numbered labels."""
    path = tmp_path / "online"
    method = ("--method", request.param, *PARAMETERS[request.param])
    trained = labelwood("train", data, "-o", path, *method, "--json")
    assert trained.json["nodes"] >= trained.json["labels"]
    return path


@pytest.fixture(
    params=[package.OnlineTree(n_jobs=1), package.OnlineForest(n_trees=2, n_jobs=1), package.LivingTree(n_jobs=1)],
    ids=["tree", "forest", "living"],
)
def named(request, tmp_path):
    """A growing model with label names."""
    model = clone(request.param).partial_fit([{0: 1.0}, {1: 1.0}, {2: 1.0}], [["red"], ["green"], ["blue"]])
    model.save(tmp_path / "named")
    return tmp_path / "named"


def test_learn_a_file(labelwood, online, data, test_data, tmp_path):
    learned = labelwood("learn", online, data, "--json").json
    assert learned["rows"] == 120
    assert learned["new_labels"] == 0
    straight = load(data)
    model = package.load(online)
    assert model.n_seen_ == 2 * straight.X.n_rows
    assert labelwood("eval", online, test_data, "--json").json["P@1"] > 90


def test_learn_lines(labelwood, named, monkeypatch):
    lines = ["red 0:1 0:1\n", "\n", json.dumps({"labels": ["violet"], "features": {"9": 2}}) + "\n", " 3:0.5 4\n"]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(lines)))
    learned = labelwood("learn", named, "-", "--json").json
    assert (learned["rows"], learned["new_labels"]) == (3, 1)
    model = package.load(named)
    assert model.predict_topk([{9: 1.0}], 1)[0].tolist() == [["violet"]]


def test_learn_lines_of_numbers(labelwood, online, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("99 7:1\n"))
    assert labelwood("learn", online, "-", "--json").json["labels"] == 100


@pytest.mark.parametrize("line", ['{"labels": 3}', "a 1:x", "a x:1", '{"labels": ["a"], "features": {"1": "x"}}', "{"])
def test_bad_lines(labelwood, named, monkeypatch, line):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"red 0:1\n{line}\n"))
    complaint = labelwood("learn", named, "-").complaint(1)
    assert complaint.startswith("labelwood: stdin, line 2:")
    assert complaint.endswith("the lines before it were learned and saved")
    assert package.load(named).n_seen_ == 4


def test_inference_only(labelwood, online, test_data, tmp_path):
    complaint = labelwood("learn", online, "--inference-only").complaint(1)
    assert "needs -o" in complaint
    small = tmp_path / "small"
    written = labelwood("learn", online, "--inference-only", "-o", small, "--json").json
    assert written["rows"] == 0
    assert labelwood("eval", small, test_data, "--json").json["P@1"] > 80
    assert "cannot learn" in labelwood("learn", small, test_data).complaint(1)


def test_labels(labelwood, named, model):
    assert [entry["name"] for entry in labelwood("labels", named, "list", "--json").json] == ["red", "green", "blue"]
    assert labelwood("labels", named, "retire", "red").code == 0
    assert labelwood("labels", named, "merge", "green", "blue").code == 0
    assert labelwood("labels", named, "rename", "blue", "azure").code == 0
    table = labelwood("labels", named, "list").out.splitlines()
    assert table[0].split() == ["label", "id", "state", "support", "age", "idle"]
    assert "merged into azure" in table[2]
    loaded = package.load(named)
    assert set(loaded.predict_topk([{0: 1.0}], 3)[0].ravel()) == {"azure", None}
    assert labelwood("labels", named, "restore", "red", "--json").json["action"] == "restore"
    assert "takes 2 labels; got 1" in labelwood("labels", named, "merge", "red").complaint(2)
    assert "there is no label 'pink'" in labelwood("labels", named, "retire", "pink").complaint(1)


def test_models_that_do_not_learn(labelwood, model, data):
    entries = labelwood("labels", model, "list", "--json").json
    assert [entry["support"] for entry in entries] == package.load(model).label_counts_.tolist()
    assert {entry["state"] for entry in entries} == {"active"}
    for words in (("labels", model, "retire", 0), ("learn", model, "-")):
        complaint = labelwood(*words).complaint(1)
        assert complaint.startswith(f"labelwood: {model}: this linear-tree model cannot learn")


def test_labels_by_number(labelwood, online):
    assert labelwood("labels", online, "retire", 3).code == 0
    states = [entry["state"] for entry in labelwood("labels", online, "list", "--json").json]
    assert states[3] == "retired"


def test_data_synth(labelwood, tmp_path):
    path = tmp_path / "made.npz"
    sizes = ["--rows", 500, "--labels", 60, "--features", 900]
    made = labelwood("data", "synth", path, *sizes, "--stream", "--seed", 3, "--json").json
    assert (made["rows"], made["labels"], made["features"]) == (500, 60, 900)
    first = load(path)
    again = tmp_path / "again.npz"
    assert labelwood("data", "synth", again, *sizes, "--stream", "--seed", 3).code == 0
    np.testing.assert_array_equal(first.X.indices, load(again).X.indices)
    assert "ACTION takes synth" in labelwood("data", "paint", path).complaint(2)
