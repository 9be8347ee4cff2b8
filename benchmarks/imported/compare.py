"""Imported models against the tools that trained them: the same labels and scores, and the time of a batch.

    python benchmarks/imported/compare.py ../shared/data/eurlex57k --tools omikuji,pecos,napkinxc --rounds 3

Each tool trains in its own environment, that of benchmarks/versus, once. Then the tool and Labelwood predict the test
rows in turn, one thread each; CPU seconds are compared, the best of the rounds. The result is
out/imported-<data>.json. A row counts as tied if it differs only in labels whose scores differ by less than 1e-5.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSUS = HERE.parent / "versus"
sys.path.insert(0, str(VERSUS))

from convert import convert  # noqa: E402
from venvs import python_of  # noqa: E402

from labelwood.importing import import_model  # noqa: E402

K, CLOSE = 5, 1e-5


def main() -> int:
    """Train what is missing, import, predict in turn, compare; return 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tools", default="omikuji,pecos,napkinxc,libmultilabel")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    prepared = ROOT / "build" / "versus" / options.data.name
    facts = convert(options.data, prepared)
    peers = tomllib.loads((VERSUS / "configurations.toml").read_text())["peers"]
    X = sp.csr_matrix(sp.load_npz(prepared / "test_X.npz")).astype(np.float32)
    X.sort_indices()
    rows = []
    for tool in options.tools.split(","):
        python = python_of(tool, peers[tool]["requirements"], ROOT / "build" / "peers")
        rows.append(_compare(tool, python, prepared, X, facts["features"], options.rounds))
        print(json.dumps(rows[-1]), flush=True)
    out = ROOT / "out" / f"imported-{options.data.name}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"data": options.data.name, "rows": rows}, indent=1) + "\n")
    return 1 if any(row["rows_that_differ"] for row in rows) else 0


def _compare(tool: str, python: str, data: Path, X: sp.csr_matrix, n_features: int, rounds: int) -> dict[str, Any]:
    model = ROOT / "build" / "imported" / data.name / tool
    script = str(HERE / "peer.py")
    if not model.exists():
        model.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([python, script, tool, "train", str(data), str(model)], check=True, stdout=subprocess.DEVNULL)
    started = time.process_time()
    ours = import_model(model, n_features=n_features)
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
        "tool": tool,
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
