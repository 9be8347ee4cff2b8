"""Compare two builds of Labelwood: time of training, prediction and loading, and equality of the models.

    python benchmarks/two_builds.py ../before/.venv/bin/python .venv/bin/python eurlex57k --rounds 5
    python benchmarks/two_builds.py BEFORE AFTER eurlex57k --methods ldsm-forest --set n_trees=50 --set normalize=True

The builds run in turns, each measurement in its own process and on one thread. Times are CPU seconds. The
ratio is the median of the second build divided by the median of the first. The spread is the smallest and the
largest ratio within a round. Quality is the median over the rounds. The saved arrays of both builds are compared
byte for byte.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
METHODS = ("linear-tree", "one-vs-rest", "online-tree", "craft-forest")
WHAT = ("train", "batch", "one row", "load")
WORKER = """
import hashlib, json, sys, time
from pathlib import Path
from labelwood import METHODS, data, load
method, folder, model = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
given = json.loads(sys.argv[4])
def seconds(action, times=1):
    start = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - start) / times
train, test = (data.load(next(p for p in sorted(folder.glob(f"{part}.txt*")) if ".raw." not in p.name))
               for part in ("train", "test"))
estimator = METHODS[method](n_jobs=1, random_state=0, **given)
found = {"train": seconds(lambda: estimator.fit(train.X, train.Y))}
estimator.save(model)
found["load"] = seconds(lambda: load(model), 20)
loaded = load(model)
loaded.n_jobs = 1
rows = test.X.to_scipy()
loaded.predict_topk(rows[:200], k=5)
truth, best = test.Y.to_scipy().tocsr(), loaded.predict_topk(rows, k=5)[0]
hits = [[label >= 0 and truth[row, label] > 0 for label in labels] for row, labels in enumerate(best)]
for k in (1, 3, 5):
    found[f"P@{k}"] = 100 * sum(sum(map(bool, row[:k])) for row in hits) / (k * len(hits))
found["batch"] = seconds(lambda: loaded.predict_topk(rows, k=5), 3)
singles = [rows[[row]] for row in range(0, rows.shape[0], max(1, rows.shape[0] // 500))]
found["one row"] = seconds(lambda: [loaded.predict_topk(row, k=5) for row in singles], 3)
arrays = sorted(Path(model).glob("*.npy"))
found["arrays"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in arrays}
print(json.dumps(found))
"""


def measure(python: str, method: str, folder: Path, given: dict) -> dict:
    """Run WORKER once with the Python of one build."""
    with tempfile.TemporaryDirectory() as made:
        words = [python, "-c", WORKER, method, str(folder), str(Path(made) / "model"), json.dumps(given)]
        return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="Python interpreter of the first build")
    parser.add_argument("after", help="Python interpreter of the second build")
    parser.add_argument("data", help="data folder, or its name below LABELWOOD_DATA or ../shared/data")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the methods")
    options = parser.parse_args()
    folder = Path(options.data)
    if not folder.is_dir():
        folder = Path(os.environ.get("LABELWOOD_DATA", BESIDE)) / options.data
    given = {name: ast.literal_eval(value) for name, value in (one.split("=", 1) for one in options.set)}
    print(f"{'method':<14}{'':<10}{'before':>10}{'after':>10}{'ratio':>8}  spread")
    for method in options.methods.split(","):
        rounds = []
        for number in range(options.rounds):
            order = (options.before, options.after) if number % 2 == 0 else (options.after, options.before)
            found = {python: measure(python, method, folder, given) for python in order}
            rounds.append((found[options.before], found[options.after]))
        for what in WHAT:
            before, after = (statistics.median(one[side][what] for one in rounds) for side in (0, 1))
            ratios = [one[1][what] / one[0][what] for one in rounds]
            print(
                f"{method:<14}{what:<10}{before:>10.4f}{after:>10.4f}{after / before:>8.3f}"
                f"  {min(ratios):.3f} to {max(ratios):.3f}",
                flush=True,
            )
        for k in (1, 3, 5):
            before, after = (statistics.median(one[side][f"P@{k}"] for one in rounds) for side in (0, 1))
            print(f"{method:<14}{f'P@{k}':<10}{before:>10.2f}{after:>10.2f}", flush=True)
        same = all(one[0]["arrays"] == one[1]["arrays"] for one in rounds)
        print(f"{method:<14}model bytes {'equal' if same else 'DIFFER'}", flush=True)


if __name__ == "__main__":
    main()
