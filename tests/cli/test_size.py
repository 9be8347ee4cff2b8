"""The commands that tell the size of a model beforehand and make it smaller afterwards."""

import pytest

from labelwood import load


def test_estimate_for_machines_and_people(labelwood, data, tmp_path):
    found = labelwood("estimate", data, "--weight-threshold", "none", "--json").json
    trained = labelwood("train", data, "-o", tmp_path / "m", "--weight-threshold", "none", "--json").json
    assert trained["model_bytes"] <= found["model_bytes"]["value"] <= trained["model_bytes"] + 4000
    assert found["weights"] == sum(level["weights"] for level in found["levels"])
    assert found["paper_ratio"] == pytest.approx(1.5)  # eight labels: the tree is one-vs-rest
    shown = labelwood("estimate", data)
    assert shown.code == 0
    for word in ("model", "peak memory", "time", "one-vs-rest", "weight_threshold=0.3"):
        assert word in shown.out


def test_estimate_of_texts_and_of_forests(labelwood, tmp_path):
    texts = tmp_path / "docs.csv"
    rows = [f"dogs bark {i},pets" if i % 2 else f"income tax {i},law" for i in range(40)]
    texts.write_text("\n".join(["text,labels", *rows]) + "\n")
    found = labelwood("estimate", texts, "--method", "craft-forest", "--n-trees", 5, "--json").json
    assert (found["method"], found["n_trees"]) == ("craft-forest", 5)
    assert found["model_bytes"]["value"] <= found["bound_bytes"] + 4000
    assert "levels" in found
    complaint = labelwood("estimate", texts, "--method", "craft-forest", "--plot", tmp_path / "p.png").complaint(1)
    assert "--plot is for label trees" in complaint


def test_estimate_draws(labelwood, data, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "levels.png"
    assert labelwood("estimate", data, "--max-leaf", 2, "--arity", 2, "--plot", path).code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_train_keeps_a_budget_or_says_what_would(labelwood, data, tmp_path):
    complaint = labelwood("train", data, "-o", tmp_path / "m", "--max-memory", "1MB").complaint(1)
    assert complaint.startswith("labelwood: LinearTree: training needs up to ")
    assert "more than the 1.0 MB that --max-memory allows" in complaint
    assert not (tmp_path / "m").exists()
    assert labelwood("train", data, "-o", tmp_path / "m", "--max-memory", "100GB").code == 0
    wrong = labelwood("train", data, "-o", tmp_path / "m", "--max-memory", "lots").complaint(2)
    assert "--max-memory takes a number of bytes, such as 500MB; got 'lots'" in wrong


def test_shrink_shows_the_curve_and_writes_what_is_asked(labelwood, model, test_data, tmp_path):
    points = labelwood("shrink", model, test_data, "--json").json["curve"]
    assert [point["setting"] for point in points][:2] == ["as it is", "threshold 0.05"]
    assert {"P@1", "P@3", "P@5", "model_bytes"} <= points[0].keys()
    small = tmp_path / "small"
    shown = labelwood("shrink", model, test_data, "-o", small, "--threshold", 0.3, "--dtype", "int8")
    assert shown.code == 0
    assert "asked: threshold 0.3, dtype int8" in shown.out
    assert load(small).describe()["stored_as"] == "int8"
    assert load(small).describe()["nonzero_weights"] < load(model).describe()["nonzero_weights"]


def test_shrink_refuses_what_makes_no_sense(labelwood, model, data, test_data, tmp_path):
    assert "-o needs" in labelwood("shrink", model, test_data, "-o", tmp_path / "s").complaint(2)
    both = labelwood("shrink", model, test_data, "--threshold", 1, "--target-size", "1MB").complaint(2)
    assert "exclude each other" in both
    assert labelwood("train", data, "-o", tmp_path / "f", "--method", "craft-forest", "--n-trees", 2).code == 0
    assert "only label-tree models can be shrunk" in labelwood("shrink", tmp_path / "f", test_data).complaint(1)
