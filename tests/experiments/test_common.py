"""What the experiments share: data sets as they come, parts of them, stand-ins, and what is written."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labelwood.data import save
from labelwood.data.synth import Shape, synth

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("experiments are not part of this checkout", allow_module_level=True)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def made():
    return synth(Shape(n_rows=60, n_labels=12, n_features=50, branching=2, levels=2))


def as_lists(rows):
    return rows.X.to_scipy().toarray().tolist(), rows.Y.to_scipy().toarray().tolist()


def test_two_files_that_differ_in_width_get_the_same_columns(tmp_path):
    from experiments.common import read

    (tmp_path / "eurlex_train.txt").write_text("2 4 3\n0,2 1:0.5 3:1\n1 0:2\n")
    (tmp_path / "eurlex_test.txt").write_text("1 5 3\n2 4:1\n")
    split = read(tmp_path, "eurlex")
    assert (split.train.X.n_cols, split.test.X.n_cols) == (5, 5)
    assert split.train.Y.indices.tolist() == [0, 2, 1]


def test_features_and_labels_apart(tmp_path):
    from experiments.common import read

    for part in ("trn", "tst"):
        (tmp_path / f"{part}_X_Xf.txt").write_text("2 4\n1:0.5 3:1\n0:2\n")
        (tmp_path / f"{part}_X_Y.txt").write_text("2 3\n0:1 2:1\n\n")
    split = read(tmp_path, "apart")
    assert as_lists(split.train) == ([[0, 0.5, 0, 1], [2, 0, 0, 0]], [[1, 0, 1], [0, 0, 0]])


def test_one_file_and_its_splits(tmp_path, made):
    from experiments.common import read

    save(tmp_path / "Bibtex_data.txt", made)
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    np.savetxt(tmp_path / "bibtex_trSplit.txt", np.c_[train + 1, test + 1], fmt="%d")
    np.savetxt(tmp_path / "bibtex_tstSplit.txt", np.c_[test + 1, train + 1], fmt="%d")
    split = read(tmp_path, "Bibtex")
    assert as_lists(split.test)[1] == as_lists(made)[1][1::2]


def test_a_folder_is_found_whatever_its_case(tmp_path):
    from experiments.common import find

    (tmp_path / "wiki10_31k").mkdir()
    assert find(tmp_path, "Wiki10-31K") == tmp_path / "wiki10_31k"
    assert find(tmp_path, "Amazon-3M") is None


def test_held_out_rows_are_no_training_rows(made):
    from experiments.common import Split, held_out

    split = Split("made", made, made)
    part = held_out(split, seed=3)
    assert (part.train.n_rows, part.test.n_rows) == (48, 12)
    again, other = held_out(split, seed=3), held_out(split, seed=4)
    assert as_lists(part.test) == as_lists(again.test)
    assert as_lists(part.test) != as_lists(other.test)


def test_a_stand_in_has_the_proportions_and_says_what_it_is():
    from experiments.common import SHAPES, stand_in

    split = stand_in("Wiki10-31K", n_rows=200)
    rows, _, labels, _ = SHAPES["Wiki10-31K"]
    assert split.train.Y.n_cols / split.train.n_rows == pytest.approx(labels / rows, rel=0.05)
    assert "not reproduced" in split.title


def test_cells_show_mean_and_standard_deviation():
    from experiments.report import shown

    assert shown([1.0, 3.0]) == "2.00 ± 1.00"
    assert shown([2.5]) == "2.50"
    assert shown([0.01, 0.03]) == "0.0200 ± 0.0100"
    assert (shown(None), shown(7), shown("x")) == ("-", "7", "x")


def test_the_frontier_is_what_no_other_point_beats():
    from experiments.grand_table import frontier

    assert frontier([(3, 9), (1, 5), (2, 4), (4, 9)]) == [(1, 5), (3, 9)]


def run(*flags, cwd=ROOT):
    return subprocess.run([sys.executable, "-m", *flags], cwd=cwd, check=False, capture_output=True, text=True)


def test_a_table_is_written_with_every_seed(tmp_path, made):
    folder = tmp_path / "data" / "made"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        save(folder / f"{part}.txt", made)
    where = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    done = run("experiments.measure", "one-vs-rest", "--sets", "made", "--seeds", "2", "--set", "C=0.5", *where)
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "out" / "measure" / "one-vs-rest.json").read_text())
    (row,) = facts["tables"][0]["rows"]
    assert len(row["P@1"]) == 2
    assert "C=0.5" in row["parameters"]
    assert "± " in (tmp_path / "out" / "measure" / "one-vs-rest.md").read_text()


def test_the_runner_goes_on_after_a_failure_and_tells(tmp_path):
    """Figure 2 of LdSM needs data that are not there; the theory of the size paper needs none."""
    where = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--only"]
    failed = run("experiments.run", *where, "ldsm.figure7")
    assert failed.returncode == 1
    assert "no such folder" in failed.stderr
    assert "failed" in (tmp_path / "out" / "index.md").read_text()
    done = run("experiments.run", *where, "figures_3_6_8")
    assert done.returncode == 0, done.stderr
    (part,) = json.loads((tmp_path / "out" / "index.json").read_text())
    assert "linear_tree_size/figure3.png" in part["files"]
    assert (tmp_path / "out" / "linear_tree_size" / "figure8.md").exists()


def test_every_script_is_a_part_or_a_tool():
    """A script that nobody runs is found out."""
    from experiments.run import PARTS

    tools = {
        "as_printed",
        "common",
        "compare",
        "settings",
        "measure",
        "publish",
        "report",
        "run",
        "user_tables",
        "ldsm.choose",
        "craftml.readings",
        "oplt.choose",
        "oplt.latency",
    }
    tools |= {"oplt.stream", "oplt.few_shot_vw", "oplt.readings", "ranker.texts", "ranker.trials"}
    tools |= {"active.choose", "annif.measure", "living.stream", "living.twins", "living.variants"}
    tools |= {"texts.encoders", "texts.training", "texts.tune"}
    tools |= {"vectors.rows", "vectors.encode", "vectors.table"}
    there = {
        ".".join(path.relative_to(ROOT / "experiments").with_suffix("").parts)
        for path in (ROOT / "experiments").rglob("*.py")
        if path.stem != "__init__"
    }
    assert there - tools == set(PARTS)


def test_runs_are_kept_seed_by_seed(tmp_path, monkeypatch):
    from experiments.common import kept, parse, recorded

    monkeypatch.setattr(sys, "argv", ["x", "--out", str(tmp_path), "--seeds", "2"])
    options, asked = parse("", sets=()), []
    key = {"data": "made", "method": "craft-forest", "parameters": {"n_trees": 3}, "quick": False}

    def one(seed):
        asked.append(seed)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {"P@1": 10.0 + seed}

    with pytest.raises(KeyboardInterrupt):
        kept(options, key, one)
    assert recorded(options, key) == {"P@1": [10.0]}
    assert kept(options, key, one) == {"P@1": [10.0, 11.0]}
    assert asked == [0, 1, 1]
    assert recorded(options, {**key, "parameters": {"n_trees": 4}}) == {}
    options.again = True
    kept(options, key, one)
    assert asked == [0, 1, 1, 0, 1]


def test_an_interrupted_list_of_parts_is_gone_on_with(tmp_path):
    from experiments.run import Index

    parts = [{"part": name, "what": "", "seconds": 1.0, "cpu_seconds": 1.0, "ok": name != "ldsm.figure2",
              "files": [], "error": "no"} for name in ("ldsm.figure4", "ldsm.figure2")]  # fmt: skip
    first = Index(tmp_path, resume=False)
    for part in parts:
        first.add(part, 1.0)
    again = Index(tmp_path, resume=True)
    assert [again.has(f"ldsm.figure{number}") for number in (2, 4, 5)] == [False, True, False]
    again.add(parts[1] | {"ok": True}, 1.0)
    assert [part["part"] for part in json.loads((tmp_path / "index.json").read_text())] == [
        "ldsm.figure2",
        "ldsm.figure4",
    ]
    assert not Index(tmp_path, resume=False).has("ldsm.figure4")


def test_what_is_tried_is_judged_on_other_training_rows_for_every_seed(tmp_path, monkeypatch, made):
    from experiments.common import QUALITY, Split, held_out, measured, parse
    from experiments.settings import tried
    from labelwood import CraftForest

    monkeypatch.setattr(sys, "argv", ["x", "--out", str(tmp_path), "--seeds", "2"])
    options, split = parse("", sets=()), Split("made", made, made)
    found = tried("craft-forest", split, options, n_trees=3)
    for seed in (0, 1):
        alone = measured(CraftForest(n_trees=3, n_jobs=1, random_state=seed), held_out(split, seed))
        assert [found[metric][seed] for metric in QUALITY] == [alone[metric] for metric in QUALITY]
    files = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert tried("craft-forest", split, options, n_trees=3) == found  # its times too: nothing ran again
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == files
    tried("craft-forest", split, options, n_trees=2)
    assert len(list((tmp_path / "runs").iterdir())) == 2
