"""Compare candidate defaults of LinearTree on a held-out fifth of each training set, never on a test set.

    python benchmarks/linear_tree_defaults.py [--data ../shared/data] [--sets bibtex,delicious] [--only C]

Prints one line per candidate: P@1/3/5 on the held-out rows, CPU seconds of fit, bytes of the saved model.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import numpy as np

import labelwood
from labelwood.metrics import precision_at_k

BASE = {  # all other parameters keep their defaults
    "arity": 16,
    "max_leaf": 100,
    "cluster_features": None,
    "C": 1.0,
    "score_power": 2,
    "n_jobs": 1,
}
CANDIDATES = {
    "base": {},
    "C=0.5": {"C": 0.5},
    "C=0.7": {"C": 0.7},
    "C=2": {"C": 2.0},
    "tolerance=0.1": {"tolerance": 0.1},
    "tolerance=0.3": {"tolerance": 0.3},
    "tolerance=1": {"tolerance": 1.0},
    "intercept=0 bias=1": {"intercept": 0.0, "bias": 1.0},
    "bias=0": {"bias": 0.0},
    "bias=0.1": {"bias": 0.1},
    "bias=1": {"bias": 1.0},
    "max_leaf=50": {"max_leaf": 50},
    "max_leaf=200": {"max_leaf": 200},
    "max_leaf=400": {"max_leaf": 400},
    "arity=2": {"arity": 2},
    "arity=32": {"arity": 32},
    "cluster_features=50": {"cluster_features": 50},
    "cluster_features=100": {"cluster_features": 100},
    "cluster_features=300": {"cluster_features": 300},
    "kmeans 100": {"tree": "kmeans", "arity": 100},
    "random tree": {"tree": "random"},
    "huffman tree": {"tree": "huffman", "arity": 2},
    "logistic C=8": {"loss": "logistic", "C": 8.0, "intercept": 0.0, "bias": 1.0},
    "no threshold": {"weight_threshold": None},
    "float32 weights": {"weight_dtype": "float32"},
    "beam_width=5": {"beam_width": 5},
    "beam_width=30": {"beam_width": 30},
    "exact search": {"search": "exact"},
    "score_power=3": {"score_power": 3},
    "score_power=4": {"score_power": 4},
    "max_leaf=400 C=0.7": {"max_leaf": 400, "C": 0.7},
    "max_leaf=400 C=0.7 score_power=3": {"max_leaf": 400, "C": 0.7, "score_power": 3},
    "joint 200 C=1 power=2": {"max_leaf": 200, "cluster_features": 100},
    "joint 400 C=1 power=3": {"max_leaf": 400, "cluster_features": 100, "score_power": 3},
    "joint 400 C=0.7 power=3": {"max_leaf": 400, "cluster_features": 100, "C": 0.7, "score_power": 3},
    "joint 400 C=0.5 power=3": {"max_leaf": 400, "cluster_features": 100, "C": 0.5, "score_power": 3},
    # A tolerance just below 0.5 differs only in the final passes: they visit all rows.
    "one full pass": {"max_leaf": 400, "cluster_features": 100, "C": 0.7, "score_power": 3},
    "full passes until converged": {
        "max_leaf": 400,
        "cluster_features": 100,
        "C": 0.7,
        "score_power": 3,
        "tolerance": 0.49,
    },
    "n_trees=3": {"n_trees": 3},
    "n_trees=3 C=0.5": {"n_trees": 3, "C": 0.5},
}


def saved_bytes(model: labelwood.TreeEstimator) -> int:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return sum(file.stat().st_size for file in (Path(folder) / "model").iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--sets", default="bibtex,delicious,eurlex57k,yso_finna_en")
    parser.add_argument("--only", default="", help="try only candidates whose name matches this regular expression")
    options = parser.parse_args()
    for name in options.sets.split(","):
        data = labelwood.data.load(options.data / name / "train.txt.xz", label_names=False)
        order = np.random.default_rng(0).permutation(data.n_rows)
        held, kept = np.sort(order[: data.n_rows // 5]), np.sort(order[data.n_rows // 5 :])
        X, Y = data.X.take(kept).to_scipy(), data.Y.take(kept).to_scipy()
        for title, changes in CANDIDATES.items():
            if not re.search(options.only, title):
                continue
            model = labelwood.LinearTree(**{**BASE, **changes})
            start = time.process_time()
            model.fit(X, Y)
            seconds = time.process_time() - start
            top = model.topk_ids(data.X.take(held), 5)
            scores = [100 * precision_at_k(data.Y.take(held), top, k) for k in (1, 3, 5)]
            figures = " ".join(f"{score:6.2f}" for score in scores)
            print(f"{name:14} {title:24} {figures} {seconds:7.2f} s {saved_bytes(model) / 1e6:7.1f} MB", flush=True)


if __name__ == "__main__":
    main()
