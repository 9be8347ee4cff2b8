"""``labelwood eval``: intervals, the table of labels, and the comparison of models."""

import csv
import shutil

import pytest

from labelwood import load
from labelwood.data import load as load_data
from labelwood.metrics import calibration_error


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


@pytest.fixture
def weak(labelwood, data, tmp_path):
    path = tmp_path / "weak"
    assert labelwood("train", data, "-o", path, "--method", "ldsm-forest", "--n-trees", 1, "--max-nodes", 1).code == 0
    return path


def test_compare_any_number_of_models(labelwood, model, weak, test_data):
    alone = {path: labelwood("eval", path, test_data, "--json").json for path in (model, weak)}
    found = labelwood("eval", model, test_data, "--compare", weak, "--compare", model, "--json").json
    assert list(found["compared"]) == [str(weak), str(model)]
    for path, other in ((weak, alone[weak]), (model, alone[model])):
        compared = found["compared"][str(path)]
        figures = {name: value for name, value in compared.items() if name != "differences"}
        assert figures == {name: other[name] for name in figures}
        assert {"P@1", "PSnDCG@5", "coverage@3", "macroF1@5", "microF1", "calibration_error"} <= figures.keys()
        for name, difference in compared["differences"].items():
            assert difference["mean"] == pytest.approx(other[name] - alone[model][name], abs=1e-4)
    assert found["compared"][str(weak)]["differences"]["P@1"]["interval"][1] < 0, "worse beyond chance"
    assert found["compared"][str(model)]["differences"]["P@1"]["interval"] == [0, 0]


def test_a_comparison_has_a_row_per_model_and_a_column_per_metric(labelwood, model, weak, test_data, tmp_path):
    third = shutil.copytree(model, tmp_path / "third")
    words = ("--compare", weak, "--compare", third, "--resamples", 50)
    lines = labelwood("eval", model, test_data, *words).out.splitlines()
    figures = labelwood("eval", weak, test_data, "--json").json
    for k in (1, 3, 5):
        names = [f"{name}@{k}" for name in ("P", "R", "nDCG", "coverage", "macroF1", "PSP", "PSnDCG")]
        start = next(place for place, line in enumerate(lines) if line.split() == ["percent", *names])
        assert [line.split()[0] for line in lines[start + 1 : start + 4]] == [str(model), str(weak), str(third)]
        assert lines[start + 2].split()[1:] == [f"{figures[name]:.2f}" for name in names]
    [difference] = [line for line in lines if line.startswith(str(weak)) and line.count("(") == 3 and "* " in line][:1]
    assert difference.split()[1].startswith("-")


def test_each_figure_has_one_name_and_is_explained_once(labelwood, model, test_data):
    found = labelwood("eval", model, test_data, "--json").json
    assert "macroF1" not in found
    assert {"macroF1@5", "macroF1_of_sets", "microF1"} <= found.keys()
    lines = labelwood("eval", model, test_data, "--resamples", 10).out.splitlines()
    named = ("P@k", "R@k", "nDCG@k", "PSP@k, PSnDCG@k", "coverage@k", "macroF1@k", "microP, microR, microF1",
             "macroF1 of sets", "calibration error", "95%")  # fmt: skip
    for name in named:
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1, name


def test_the_calibration_error_is_in_percent(labelwood, model, test_data):
    found = labelwood("eval", model, test_data, "--json").json
    whole = load(model)
    dataset = load_data(test_data)
    top = whole.topk_ids(dataset.X, 5)
    assert found["calibration_error"] == pytest.approx(100 * calibration_error(dataset.Y, top), abs=1e-4)
    shown = labelwood("eval", model, test_data, "--resamples", 10).out.splitlines()
    place = next(place for place, line in enumerate(shown) if line.endswith("calibration error"))
    assert shown[place].startswith("percent")
    assert float(shown[place + 1].split()[-1]) == pytest.approx(found["calibration_error"], abs=0.01)
