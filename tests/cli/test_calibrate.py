"""``labelwood calibrate``, what ``eval``, ``predict`` and ``plot`` make of it, and blends on the command line."""

import json

import pytest


@pytest.fixture
def calibrated(labelwood, model, test_data):
    return labelwood("calibrate", model, test_data, "--json").json


def test_scores_are_calibrated_and_thresholds_chosen(labelwood, data, test_data, tmp_path):
    model = tmp_path / "steep"
    labelwood("train", data, "-o", model, "--score-power", 1)
    calibrated = labelwood("calibrate", model, test_data, "--json").json
    assert calibrated["error_after"] < calibrated["error_before"]
    assert calibrated["rows"] > 0
    assert calibrated["calibration"].startswith(("isotonic", "platt"))
    found = labelwood("eval", model, test_data, "--json").json
    assert found["calibration_error"] == pytest.approx(100 * calibrated["error_after"], abs=1e-3)
    shown = labelwood("eval", model, test_data).out
    assert "calibration error" in shown
    assert "microF1" in shown


def test_thresholds_decide(labelwood, model, test_data, calibrated):
    every = labelwood("predict", model, test_data, "-k", 8, "--json").out.splitlines()
    decided = labelwood("predict", model, test_data, "-k", 8, "--decide", "--json").out.splitlines()
    for all_of_row, kept in zip(map(json.loads, every), map(json.loads, decided), strict=True):
        passed = [score for score in all_of_row["scores"] if score >= calibrated["threshold"] - 1e-6]
        assert kept["scores"] == passed


def test_a_precision_can_be_asked_for(labelwood, model, test_data):
    strict = labelwood("calibrate", model, test_data, "--target", "precision", "--level", 0.99, "--json").json
    lax = labelwood("calibrate", model, test_data, "--target", "precision", "--level", 0.3, "--json").json
    assert lax["threshold"] < strict["threshold"]
    labelwood("calibrate", model, test_data, "--target", "precision", "--level", 0.99)
    assert labelwood("eval", model, test_data, "--json").json["microP"] >= 99


def test_no_threshold(labelwood, model, test_data):
    found = labelwood("calibrate", model, test_data, "--target", "none", "--map", "platt", "--json").json
    assert found["calibration"].startswith("platt")
    assert "threshold" not in found
    complaint = labelwood("calibrate", model, test_data, "--target", "none", "--per-label").complaint(2)
    assert "--per-label needs a --target" in complaint
    assert "a number above 0, at most 1" in labelwood("calibrate", model, test_data, "--level", 2).complaint(2)


def test_the_tail_and_what_it_costs(labelwood, model, test_data):
    found = labelwood("eval", model, test_data, "--objective", "tail")
    assert found.code == 0, found.err
    assert "without and with --objective tail" in found.out
    plain = labelwood("predict", model, test_data).out
    assert labelwood("predict", model, test_data, "--objective", "tail").out != plain


def test_the_reliability_diagram(labelwood, model, test_data):
    found = labelwood("plot", "reliability", model, "--data", test_data, "--json").json
    diagonal, curve = found["curves"]
    assert diagonal["x"] == diagonal["y"] == [0, 1]
    assert all(0 <= share <= 1 for share in curve["y"])
    assert curve["x"] == sorted(curve["x"])


def test_a_blend_from_the_command_line(labelwood, data, test_data, tmp_path):
    members = '["linear-tree", {"method": "craft-forest", "n_trees": 3}]'
    target = tmp_path / "blend"
    trained = labelwood(
        "train", data, "-o", target, "--method", "blend", "--models", members, "--n-jobs", 1, "--json"
    ).json
    assert trained["members"] == ["linear-tree", "craft-forest"]
    assert labelwood("eval", target, test_data, "--json").json["P@1"] > 30
    shown = labelwood("explain", target, test_data, "--row", 1).out
    assert "by linear-tree alone" in shown
    assert "of craft-forest" in shown
    assert labelwood("info", target).code == 0
