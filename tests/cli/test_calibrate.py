"""``labelwood calibrate``, what ``eval``, ``predict`` and ``plot`` make of it, and blends on the command line."""

import json

import pytest

from labelwood import LabelwoodWarning, load
from labelwood.data import load as load_data


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


def test_the_command_says_what_the_thresholds_buy(labelwood, model, test_data):
    found = labelwood("calibrate", model, test_data, "--target", "precision", "--level", 0.9, "--json").json
    judged = labelwood("eval", model, test_data, "--json").json
    assert found["precision_percent"] == pytest.approx(judged["microP"], abs=0.01)
    assert found["recall_percent"] == pytest.approx(judged["microR"], abs=0.01)
    decided = labelwood("predict", model, test_data, "-k", 8, "--decide").out.split("\n")[:-1]
    assert found["rows_with_labels_percent"] == pytest.approx(100 * sum(map(bool, decided)) / len(decided), abs=0.01)
    assert found["labels_per_row"] == pytest.approx(sum(len(row.split()) for row in decided) / len(decided), abs=0.001)


def test_a_threshold_that_no_row_reaches_is_warned_of(labelwood, data, tmp_path):
    """No suggestion is right on these rows: no threshold gives any precision, and predict --decide writes nothing."""
    model, held_out = tmp_path / "model", tmp_path / "wrong.txt"
    labelwood("train", data, "-o", model, "--score-power", 1)
    lines = data.read_text().splitlines()
    wrong = [
        f"{(int(line.partition(' ')[0].partition(',')[0]) + 4) % 8} {line.partition(' ')[2]}" for line in lines[1:]
    ]
    held_out.write_text("\n".join([lines[0], *wrong]) + "\n")
    found = labelwood("calibrate", model, held_out, "--target", "precision", "--level", 0.95)
    assert "rows_with_labels_percent  0\n" in found.out
    assert found.err == (
        "labelwood calibrate: 0.0% of the held-out rows get a label with --level 0.95: "
        "lower the level, or choose another target\n"
    )
    assert not labelwood("predict", model, held_out, "--decide").out.strip()
    rows = load_data(held_out)
    with pytest.warns(LabelwoodWarning, match=r"0.0% of the held-out rows get a label with level=0.95"):
        load(model).choose_thresholds(rows.X, rows.Y, target="precision", level=0.95)


def test_no_threshold(labelwood, model, test_data):
    found = labelwood("calibrate", model, test_data, "--target", "none", "--map", "platt", "--json").json
    assert found["calibration"].startswith("platt")
    assert "threshold" not in found
    complaint = labelwood("calibrate", model, test_data, "--target", "none", "--per-label").complaint(2)
    assert "--per-label has no effect: without a --target" in complaint
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
