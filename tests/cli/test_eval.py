"""``labelwood eval``: intervals, the table of labels, and the comparison of two models."""

import csv

import pytest


def test_intervals_surround_the_figures(labelwood, model, test_data):
    found = labelwood("eval", model, test_data, "--json").json
    for name, (low, high) in found["intervals"].items():
        assert low - 1e-6 <= found[name] <= high + 1e-6
    assert set(found["by_frequency"]) == {"head", "middle", "tail", "unseen"}
    assert " .. " in labelwood("eval", model, test_data, "--resamples", 10).out


def test_per_label(labelwood, model, test_data, tmp_path):
    path = tmp_path / "labels.csv"
    found = labelwood("eval", model, test_data, "--ks", 1, "--per-label", path, "--json").json
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == [str(label) for label in range(8)]
    right = sum(float(row["right"]) for row in rows)
    assert right / found["rows"] == pytest.approx(found["P@1"] / 100)
    for row in rows:
        share = 100 * float(row["right"]) / float(row["true_rows"])
        assert float(row["recall"]) == pytest.approx(share, abs=0.01)


def test_compare(labelwood, model, data, test_data, tmp_path):
    weak = tmp_path / "weak"
    assert labelwood("train", data, "-o", weak, "--method", "ldsm-forest", "--n-trees", 1, "--max-nodes", 1).code == 0
    first = labelwood("eval", model, test_data, "--json").json
    second = labelwood("eval", weak, test_data, "--json").json
    found = labelwood("eval", model, test_data, "--compare", weak, "--json").json
    difference = found["differences"]["P@1"]
    assert difference["mean"] == pytest.approx(second["P@1"] - first["P@1"], abs=1e-4)
    assert difference["interval"][1] < 0, "worse beyond chance"
    shown = labelwood("eval", model, test_data, "--compare", weak).out
    assert "beyond chance" in shown
    assert "MODEL2" in shown
