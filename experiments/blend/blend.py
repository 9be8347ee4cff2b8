"""The blend beside its members and the peers: quality, calibration, sets of labels, the tail.

    python experiments/blend/blend.py delicious bibtex --seeds 0,1,2 --out experiments/blend/results.json

Everything is learnt on the training rows: `Blend.fit` holds a fifth of them out for weights, temperatures, calibration
and thresholds, then trains the members again on all. The members are the same for every data set. Of the peers it reads
what `make versus DATA=... ARGS="--name NAME"` left under build/versus.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from labelwood import Blend, data
from labelwood.decisions import label_weights
from labelwood.metrics import (
    calibration_error,
    evaluate,
    inverse_propensities,
    label_counts,
    paired_intervals,
    report_by_frequency,
    set_scores,
)
from labelwood.progress import Run
from labelwood.sparse import TopK, from_lists

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data"))
SPLIT_0 = ("bibtex", "delicious")  # published figures are of these splits
MEMBERS = [
    {"method": "linear-tree", "n_trees": 3},
    {"method": "one-vs-rest"},
    {"method": "craft-forest", "n_trees": 30, "centroid_size": 200},
]
QUALITY = ("P@1", "P@3", "P@5", "nDCG@5")
TAIL = ("PSP@1", "PSP@3", "PSP@5")
KS = (1, 3, 5)
WIDTH = 50  # labels that a member proposes


def read(name, part):
    folder = DATA / name / "xmc_split0" if name in SPLIT_0 else DATA / name
    found = data.load(next(folder.glob(f"{part}.txt*")), label_names=False)
    return found.X, found.Y


def peers_of(name):
    """The lists of five that peers predicted, by configuration."""
    found = {}
    for path in sorted((ROOT / "build" / "versus" / name / "work").glob("*-1/predictions.npz")):
        if not path.parent.name.startswith("labelwood"):
            labels = np.load(path)["labels"].astype(np.int32)
            falling = np.broadcast_to(np.arange(labels.shape[1], 0, -1, dtype=np.float32), labels.shape)
            found[path.parent.name.removesuffix("-1")] = TopK(
                labels, np.where(labels >= 0, falling, np.float32(0))
            )
    return found


def first(top, k=5):
    return TopK(np.ascontiguousarray(top.labels[:, :k]), np.ascontiguousarray(top.scores[:, :k]))


def sets(top, threshold, n_labels):
    """The labels listed that reach a threshold, as a matrix."""
    rows = zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    return from_lists(
        [[i for i, s in zip(*row, strict=True) if i >= 0 and s >= threshold] for row in rows], n_labels
    )


def percent(values):
    return {name: round(100 * value, 2) for name, value in values.items()}


def one_run(name, seed, members, held_out, threads):
    (X, Y), (X_test, Y_test) = read(name, "train"), read(name, "test")
    start = time.process_time()
    model = Blend(members, decide="micro-f1", held_out=held_out, random_state=seed, n_jobs=threads).fit(X, Y)
    seconds = time.process_time() - start
    run = Run(n_threads=threads)
    lists = [member._topk(X_test, min(WIDTH, Y.n_cols), run) for member in model.members_]
    raw = model.mix_.combine(lists, min(WIDTH, Y.n_cols))
    decisions = model._decisions
    blended = decisions.apply(raw, WIDTH, None)
    counts = label_counts(Y)
    inverse = inverse_propensities(counts, Y.n_rows)
    weights = label_weights("tail", counts, Y.n_rows, strength=decisions.strength)
    tail = first(decisions.apply(raw, WIDTH, weights))

    def figures(top):
        found = evaluate(Y_test, top, KS, inv_propensity=inverse)
        return {key: found[key] for key in (*QUALITY, *TAIL)}

    names = [f"{m['method']} " + " ".join(f"{k}={v}" for k, v in m.items() if k != "method") for m in members]
    single = {label.strip(): first(top) for label, top in zip(names, lists, strict=True)}
    peers = peers_of(name)
    tables = {kind: {label: figures(top) for label, top in group.items()}
              for kind, group in (("members", single), ("peers", peers))}  # fmt: skip
    mine = figures(first(blended))
    beside = {}
    for kind, group in (("members", single), ("peers", peers)):
        for metric in QUALITY if group else ():
            best = max(group, key=lambda label: tables[kind][label][metric])
            gain = paired_intervals((Y_test, group[best]), (Y_test, first(blended)), KS)[metric]
            beside[f"{metric} over {kind}"] = [best, *(round(100 * value, 2) for value in gain)]
    cut = {
        "chosen": sets(blended, decisions.threshold, Y.n_cols),
        "0.5": sets(blended, 0.5, Y.n_cols),
        "top 5": sets(first(blended), 0.0, Y.n_cols),
        "0.5, not calibrated": sets(raw, 0.5, Y.n_cols),
    }
    return {
        "data": name, "seed": seed, "cpu_seconds": round(seconds, 1),
        "mix": model.describe(), "held_out": model.held_out_, "calibration": decisions.calibration.kind,
        "groups": decisions.calibration.n_groups, "threshold": decisions.threshold, "strength": decisions.strength,
        "blend": percent(mine), "tail": percent(figures(tail)),
        **{kind: {label: percent(values) for label, values in group.items()} for kind, group in tables.items()},
        "gains": beside,
        "ece": {
            "before": round(calibration_error(Y_test, first(raw)), 4),
            "after": round(calibration_error(Y_test, first(blended)), 4),
            "members": [round(calibration_error(Y_test, top), 4) for top in single.values()],
        },
        "microF1": {
            what: round(100 * set_scores(Y_test, found)["microF1"], 2) for what, found in cut.items()
        },
        "head to tail": {
            what: {part: round(100 * values["R@5"], 2) for part, values in
                   report_by_frequency(Y_test, top, counts, (5,)).items()}
            for what, top in (("precision", first(blended)), ("tail", tail))
        },
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seeds", default="0")
    parser.add_argument(
        "--members", type=json.loads, default=MEMBERS, help="JSON instead of the default members"
    )
    parser.add_argument("--held-out", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "blend.json")
    options = parser.parse_args()
    for name in options.names:
        for seed in map(int, options.seeds.split(",")):
            found = one_run(name, seed, options.members, options.held_out, options.threads)
            print(json.dumps(found, indent=1), flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            runs = json.loads(options.out.read_text()) if options.out.exists() else []
            kept = [run for run in runs if (run["data"], run["seed"]) != (name, seed)]
            options.out.write_text(json.dumps([*kept, found], indent=1) + "\n")


if __name__ == "__main__":
    main()
