"""benchmarks/versus with hand-made records and files: rows, ratios, report, plot, scores, conversion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

VERSUS = Path(__file__).resolve().parents[2] / "benchmarks" / "versus"
if not VERSUS.is_dir():
    pytest.skip("benchmarks/versus is not part of this checkout", allow_module_level=True)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """The scripts of benchmarks/versus import each other by name."""
    monkeypatch.syspath_prepend(str(VERSUS))
    monkeypatch.syspath_prepend(str(VERSUS / "drivers"))


def record(configuration, seconds, *, megabytes=10.0, precision=0.9, threads=1, round_=0, run="2026-01-02"):
    fields = dict.fromkeys(("train_cpu_seconds", "load_seconds", "batch_ms", "one_ms_p50", "one_ms_p99"), seconds / 100)
    return {
        "configuration": configuration,
        "threads": threads,
        "round": round_,
        "of": 3,
        "run": run,
        "train_seconds": seconds,
        "model_bytes": megabytes * 1e6,
        "train_peak_bytes": 5e8,
        "predict_peak_bytes": 1e8,
        "scores": dict.fromkeys(("P@1", "P@3", "P@5", "nDCG@5", "PSP@5"), precision),
    } | fields


def failed(configuration, reason):
    return {"configuration": configuration, "threads": 1, "round": 0, "of": 3, "run": "2026-01-02"} | {
        "failure": reason
    }


def test_best_is_the_smallest_and_median_the_middle_of_the_rounds():
    from aggregate import summarise

    (row,) = summarise([record("a", s, round_=i) for i, s in enumerate([5.0, 3.0, 9.0])], ["a"])
    assert (row.rounds, row.of) == (3, 3)
    assert row.best["train_seconds"] == 3.0
    assert row.median["train_seconds"] == 5.0


def test_rows_follow_threads_then_the_order_of_the_table():
    from aggregate import summarise

    records = [record("b", 1.0, threads=2), record("b", 1.0), record("a", 1.0)]
    rows = summarise(records, ["b", "a"])
    assert [(row.threads, row.configuration) for row in rows] == [(1, "b"), (1, "a"), (2, "b")]


def test_ratios_are_of_the_best_and_against_the_same_thread_count():
    from aggregate import add_ratios, summarise

    records = [record("ours", 2.0), record("ours", 4.0), record("peer", 20.0, megabytes=5.0), record("peer", 30.0)]
    records += [record("ours", 1.0, threads=2), record("peer", 12.0, threads=2), record("peer", 7.0, threads=4)]
    rows = summarise(records, ["ours", "peer"])
    add_ratios(rows, "ours")
    found = {(row.configuration, row.threads): row.ratio for row in rows}
    assert found["ours", 1]["train_seconds"] == 1.0
    assert found["peer", 1]["train_seconds"] == 10.0
    assert found["peer", 1]["model_bytes"] == 0.5
    assert found["peer", 2]["train_seconds"] == 12.0
    assert found["peer", 4] == {}


def test_a_failure_keeps_its_reason_and_does_not_hide_measured_rounds():
    from aggregate import add_ratios, summarise

    rows = summarise([failed("a", "no wheel"), record("b", 2.0), failed("b", "over budget")], ["a", "b"])
    add_ratios(rows, "a")
    assert [(row.rounds, row.failure, bool(row.best)) for row in rows] == [
        (0, "no wheel", False),
        (1, "over budget", True),
    ]
    assert rows[1].ratio == {}


def test_a_row_of_an_earlier_run_is_marked():
    from aggregate import summarise

    rows = summarise([record("a", 1.0, run="2026-01-01"), record("b", 1.0, run="2026-01-02")], ["a", "b"])
    assert [row.earlier_run for row in rows] == [True, False]


def test_a_dominated_row_is_beaten_in_time_and_precision():
    from aggregate import is_dominated, summarise

    records = [record("fast", 1.0, precision=0.8), record("good", 5.0, precision=0.9)]
    records += [record("poor", 6.0, precision=0.85), record("twin", 5.0, precision=0.9)]
    rows = summarise(records, ["fast", "good", "poor", "twin"])
    assert [is_dominated(row, rows, "train_seconds", "P@1") for row in rows] == [False, False, True, False]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (0.01234, "0.0123"), (0.5, "0.5"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_numbers_have_three_significant_digits(value, text):
    from report import number

    assert number(value) == text


def test_the_report_shows_times_ratios_and_reasons():
    from aggregate import add_ratios, summarise
    from report import markdown

    records = [record("labelwood", 2.0), record("labelwood", 3.0), record("peer", 20.0, precision=0.875)]
    rows = summarise([*records, failed("absent", "no wheel")], ["labelwood", "peer", "absent"])
    add_ratios(rows, "labelwood")
    facts = {"name": "toy", "train_rows": 10, "test_rows": 5, "features": 7, "labels": 3, "left_out": 1}
    machine = {"processor": "a processor", "cores": 2, "load": 0.5, "run": "2026-01-02"}
    page = markdown(rows, facts, machine, "labelwood")
    lines = {line.split("|")[1].strip(): line for line in page.splitlines()[::-1] if line.startswith("| ")}
    assert "| 2/3 | 2.00 (2.50) | 1.00x |" in lines["labelwood"]
    assert "| 1/3 | 20.0 | 10.0x | 0.2 | 10.0x |" in lines["peer"]
    assert "87.50" in lines["peer"]
    assert "| 0/3 | failed |" in lines["absent"]
    assert "- absent, 0/3: no wheel" in page
    widths = {line.count("|") for line in page.split("\n\n") for line in line.splitlines() if line.startswith("|")}
    assert len(widths) == 2  # two tables, and every row of a table has all of its columns


def test_the_plot_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from aggregate import summarise
    from report import plot

    plot(summarise([record("labelwood", 2.0), record("peer", 20.0)], []), tmp_path / "plot.png", "toy")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_scoring_counts_labels_in_order_and_ignores_padding(tmp_path):
    from scoring import Scorer

    truth = sp.csr_matrix(np.array([[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]], np.float32))
    labels = np.array([[0, 1, 3, -1, -1], [2, 1, 0, 3, 4]], np.int32)
    np.savez(tmp_path / "p.npz", labels=labels)
    scores = Scorer(truth, truth).scores(tmp_path / "p.npz")
    assert scores["P@1"] == pytest.approx(1 / 2)
    assert scores["P@3"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert scores["P@5"] == pytest.approx((2 / 5 + 1 / 5) / 2)


def test_conversion_normalises_rows_and_drops_rows_without_features(tmp_path):
    from convert import convert

    source = tmp_path / "toy"
    source.mkdir()
    (source / "train.txt").write_text("3 4 3\n0,2 0:3 1:4\n1\n 3:2\n")
    (source / "test.txt").write_text("1 4 3\n1 2:1\n")
    facts = convert(source, tmp_path / "converted")
    assert (facts["train_rows"], facts["test_rows"], facts["left_out"]) == (2, 1, 1)
    X, Y = (sp.load_npz(tmp_path / "converted" / f"train_{side}.npz") for side in "XY")
    np.testing.assert_allclose(X.toarray(), [[0.6, 0.8, 0, 0], [0, 0, 0, 1]], rtol=1e-6)
    np.testing.assert_array_equal(Y.toarray(), [[1, 0, 1], [0, 0, 0]])
    assert (tmp_path / "converted" / "train.txt").read_text() == "2 4 3\n0,2 0:0.6 1:0.8\n 3:1\n"

    (source / "test.txt").write_text("1 4 3\n1 2:1 3:1\n")
    assert convert(source, tmp_path / "converted")["test_nonzeros"] == 2


def test_top_labels_of_dense_and_sparse_scores():
    from common import top_of_csr, top_of_dense

    scores = np.array([[0.1, 0.9, 0.5, 0.2, 0.3, 0.8], [0, 0, 0.7, 0, 0.1, 0]])
    best = [1, 5, 2, 4, 3]
    np.testing.assert_array_equal(top_of_dense(scores)[0], best)
    np.testing.assert_array_equal(top_of_csr(sp.csr_matrix(scores)), [best, [2, 4, -1, -1, -1]])


def test_a_driver_whose_package_is_missing_fails_with_a_reason(tmp_path):
    from measure import Configuration, Plan, interleave

    (tmp_path / "facts.json").write_text("{}")
    peer = Configuration("not here", "pecos", {})
    (found,) = interleave(Plan([peer], [1], 2, 60.0, "now"), {"pecos": sys.executable}, tmp_path, lambda _: {})
    assert "No module named" in found["failure"]


def test_every_configuration_has_a_driver_and_a_peer():
    import tomllib

    declared = tomllib.loads((VERSUS / "configurations.toml").read_text())
    for entry in declared["configurations"]:
        assert entry["peer"] in declared["peers"]
    for peer in declared["peers"]:
        assert (VERSUS / "drivers" / f"drive_{peer}.py").exists()


def test_an_unknown_peer_is_named_in_the_error(tmp_path):
    command = [sys.executable, str(VERSUS / "versus.py"), str(tmp_path), "--peers", "nobody"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "nobody" in done.stderr
