"""Estimates against the truth: bytes, peak memory and time of label trees, in both grades.

    python experiments/linear_tree_size/estimate.py [--data ../shared/data] [--sets bibtex,...] [--settings default,...]

Every estimate and every training runs in a process of its own, since peak memory is the process's. Columns: bytes of
the saved model (MB), then estimate over truth for bytes, peak and seconds; `cost` is the time of the estimate over that
of the training, `added` the same without growing the tree, which a training that follows uses.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import labelwood
from labelwood import memory

SETS = ("bibtex", "delicious", "eurlex57k", "yso_finna_en")
SETTINGS = {
    "default": {},
    "every weight": {"weight_threshold": None},
    "three trees": {"n_trees": 3},
    "paper": dict(labelwood.LinearTree.PRESETS["paper"]),
}


def one(path: Path, parameters: dict, mode: str, n_jobs: int) -> dict:
    """One estimate or training in this process."""
    train = labelwood.data.load(path, label_names=False)
    model = labelwood.LinearTree(**parameters, n_jobs=n_jobs)
    start = time.perf_counter()
    if mode != "fit":
        found = model.estimate(train.X, train.Y.to_scipy(), grade=mode)
        return {**found.facts(), "seconds_taken": time.perf_counter() - start}
    model.fit(train.X, train.Y.to_scipy())
    seconds = time.perf_counter() - start
    peak = memory.peak_resident()
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size = sum(file.stat().st_size for file in (Path(folder) / "model").iterdir())
    grow = sum(model.fit_seconds_.get(name, 0.0) for name in ("label vectors", "cluster"))
    return {"bytes": size, "peak": peak, "seconds": seconds, "grow": grow}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        path, parameters, mode = json.loads(options.one)
        print(json.dumps(one(Path(path), parameters, mode, options.n_jobs)))
        return
    print(
        "data, setting | MB | exact: bytes peak seconds | quick: bytes peak seconds | in band | cost added quick"
    )
    for name in options.sets.split(","):
        for setting in options.settings.split(","):
            runs = {}
            for mode in ("fit", "exact", "quick"):
                job = json.dumps(
                    [str(options.data / name / "train.txt.xz"), SETTINGS[setting], mode], default=str
                )
                command = [sys.executable, __file__, "--one", job, "--n-jobs", str(options.n_jobs)]
                runs[mode] = json.loads(
                    subprocess.run(command, check=True, capture_output=True, text=True).stdout
                )
            fit, cells = runs["fit"], []
            names = {"model_bytes": "bytes", "peak_bytes": "peak", "seconds": "seconds"}
            for grade in ("exact", "quick"):
                ratios = [runs[grade][key]["value"] / fit[truth] for key, truth in names.items()]
                cells.append(" ".join(f"{ratio:.3f}" for ratio in ratios))
            inside = [
                f"{grade[0]}{truth[0]}"
                for grade in ("exact", "quick")
                for key, truth in names.items()
                if runs[grade][key]["low"] <= fit[truth] <= runs[grade][key]["high"]
            ]
            taken = {grade: runs[grade]["seconds_taken"] for grade in ("exact", "quick")}
            cost = [taken["exact"], taken["exact"] - fit["grow"] / SETTINGS[setting].get("n_trees", 1)]
            shares = [*(value / fit["seconds"] for value in cost), taken["quick"] / fit["seconds"]]
            cells += [" ".join(inside), " ".join(f"{share:.2f}" for share in shares)]
            print(f"{name}, {setting} | {fit['bytes'] / 1e6:.2f} | " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
