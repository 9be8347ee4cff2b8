"""Imported models against the tools that trained them: the same labels and scores, and the time of a batch.

    python -m benchmarks.imported.compare ../shared/data/eurlex57k --tools omikuji,pecos,napkinxc --rounds 3

Each tool trains in its own environment, that of benchmarks/versus, once. Then the tool and Labelwood predict the test
rows in turn, one thread each; CPU seconds are compared, the best of the rounds. A row counts as tied if its labels
differ but its scores do not, to 1e-5. The results replace those of the same tools in benchmarks/imported/<data>.json,
the source of the table in docs/moving.md. scikit-learn runs in the environment of this script, because its models are
objects in memory.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import subprocess
import sys
import time
import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.versus.convert import convert
from benchmarks.versus.venvs import python_of
from labelwood.importing import from_sklearn, import_model

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
K, CLOSE = 5, 1e-5


def main() -> int:
    """Train what is missing, import, predict in turn, compare; return 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tools", default="omikuji,pecos,napkinxc,libmultilabel")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train-rows", type=int, help="train on the first rows only")
    options = parser.parse_args()
    prepared = ROOT / "build" / "versus" / options.data.name
    facts = convert(options.data, prepared)
    n_rows = facts["train_rows"]
    if options.train_rows is not None:
        prepared, n_rows = _shortened(prepared, options.train_rows), options.train_rows
    peers = tomllib.loads((ROOT / "benchmarks/versus/configurations.toml").read_text())["peers"]
    X = sp.csr_matrix(sp.load_npz(prepared / "test_X.npz")).astype(np.float32)
    X.sort_indices()
    rows: dict[str, dict[str, Any]] = {}
    for tool in options.tools.split(","):
        packages = [] if tool == "sklearn" else peers[tool]["requirements"]
        python = python_of(tool, packages, ROOT / "build" / "peers")
        measured = _compare(tool, python, prepared, X, facts["features"], options.rounds)
        rows[tool] = {"tool": tool, "train_rows": n_rows} | measured
        print(json.dumps(rows[tool]), flush=True)
    kept = HERE / f"{options.data.name}.json"
    earlier = json.loads(kept.read_text())["rows"] if kept.exists() else []
    merged = {row["tool"]: row for row in earlier} | rows
    kept.write_text(json.dumps({"data": options.data.name, "rows": list(merged.values())}, indent=1) + "\n")
    return 1 if any(row["rows_that_differ"] for row in rows.values()) else 0


def _shortened(whole: Path, n_rows: int) -> Path:
    """A folder with the first training rows and all test rows."""
    part = whole.with_name(f"{whole.name}-{n_rows}")
    part.mkdir(exist_ok=True)
    for side in "XY":
        sp.save_npz(part / f"train_{side}.npz", sp.csr_matrix(sp.load_npz(whole / f"train_{side}.npz"))[:n_rows])
    shutil.copy(whole / "test_X.npz", part / "test_X.npz")
    with (whole / "train.txt").open() as source, (part / "train.txt").open("w") as target:
        target.write(" ".join([str(n_rows), *source.readline().split()[1:]]) + "\n")
        target.writelines(islice(source, n_rows))
    return part


def _compare(tool: str, python: str, data: Path, X: sp.csr_matrix, n_features: int, rounds: int) -> dict[str, Any]:
    model = ROOT / "build" / "imported" / data.name / tool
    script = str(HERE / "peer.py")
    if not model.exists():
        model.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([python, script, tool, "train", str(data), str(model)], check=True, stdout=subprocess.DEVNULL)
    started = time.process_time()
    ours = from_sklearn(_own_pickle(model)) if tool == "sklearn" else import_model(model, n_features=n_features)
    seconds = time.process_time() - started
    ours.set_threads(1)
    ours.predict_topk(X[:10], K)
    answers = model.parent / f"{tool}.npz"
    command = [python, script, tool, "predict", str(data), str(model), str(answers)]
    theirs: list[float] = []
    own: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        _await(peer.stdout, "ready")
        for _ in range(rounds):
            peer.stdin.write("run\n")
            peer.stdin.flush()
            theirs.append(float(_await(peer.stdout, "took").split()[1]))
            started = time.process_time()
            labels, scores = ours.predict_topk(X, K)
            own.append(time.process_time() - started)
        peer.stdin.close()
    with np.load(answers) as archive:
        wanted, given = archive["labels"], archive["scores"]
    return {
        "rows": len(labels),
        "import_seconds": round(seconds, 2),
        "same_rows": int((labels == wanted).all(axis=1).sum()),
        "tied_rows": _tied(labels, scores, wanted, given),
        "rows_that_differ": int((np.abs(scores - given) > CLOSE).any(axis=1).sum()),
        "largest_score_difference": float(np.abs(scores - given).max()),
        "theirs_cpu_seconds": round(min(theirs), 3),
        "ours_cpu_seconds": round(min(own), 3),
        "times_as_fast": round(min(theirs) / min(own), 2),
    }


def _own_pickle(model: Path) -> Any:
    """The model that peer.py wrote a moment ago; a pickle from elsewhere is never opened."""
    return pickle.loads((model / "model.pickle").read_bytes())


def _tied(labels: Any, scores: Any, wanted: Any, given: Any) -> int:
    """Rows with other labels but the same scores at every place."""
    return int(((labels != wanted).any(axis=1) & (np.abs(scores - given) <= CLOSE).all(axis=1)).sum())


def _await(lines: Any, word: str) -> str:
    for line in lines:
        if line.startswith(word):
            return str(line)
    raise SystemExit("compare: the tool ended")


if __name__ == "__main__":
    sys.exit(main())
