"""``labelwood tree`` and ``labelwood plot``: files for people, JSON for machines, one line about what is wrong."""

import json

import pytest


def test_tree(labelwood, model, tmp_path):
    html, dot = tmp_path / "tree.html", tmp_path / "tree.dot"
    assert "nodes" in labelwood("tree", model, "--html", html, "--dot", dot).out
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert dot.read_text(encoding="utf-8").startswith("digraph")
    found = labelwood("tree", model, "--json").json
    assert found["size"][0] == 8
    assert "one of --html FILE, --dot FILE and --json is needed" in labelwood("tree", model).complaint(2)
    assert "there is no tree 4" in labelwood("tree", model, "--tree", 5, "--json").complaint(1)


@pytest.fixture
def forest(labelwood, data, tmp_path):
    path = tmp_path / "forest"
    assert labelwood("train", data, "-o", path, "--method", "ldsm-forest", "--n-trees", 3).code == 0
    return path


@pytest.mark.parametrize("figure", ["trees", "nodes", "size", "recall", "depth", "objective"])
def test_every_figure(labelwood, forest, test_data, tmp_path, figure):
    picture = tmp_path / "figure.png"
    done = labelwood("plot", figure, forest, "--data", test_data, "-o", picture, "--json")
    assert done.json["curves"][0]["y"]
    assert picture.read_bytes()[1:4] == b"PNG"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_wrong_requests(labelwood, forest, model, tmp_path, test_data):
    assert "needs --data" in labelwood("plot", "trees", forest, "-o", tmp_path / "x.png").complaint(2)
    assert "-o FILE is needed" in labelwood("plot", "depth", forest).complaint(2)
    assert "FIGURE takes one of trees" in labelwood("plot", "beauty", forest, "--json").complaint(2)
    assert "J is an objective" in labelwood("plot", "objective", model, "--json").complaint(1)
    assert "must end in .png" in labelwood("plot", "depth", model, "-o", tmp_path / "x.tree").complaint(1)
    two = labelwood("plot", "size", model, forest, "--data", test_data, "--json")
    assert [curve["name"] for curve in json.loads(two.out)["curves"]] == [str(model), str(forest)]
