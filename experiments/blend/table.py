"""Tables of what `blend.py` wrote, means over the seeds: `python experiments/blend/table.py out/blend.json`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

QUALITY = ("P@1", "P@3", "P@5", "nDCG@5")
TAIL = ("PSP@1", "PSP@3", "PSP@5")


def mean(values):
    return float(np.mean(list(values)))


def best(runs, kind, metric):
    """The name and the mean of the best of the members or peers."""
    names = set.intersection(*(set(run[kind]) for run in runs))
    means = {name: mean(run[kind][name][metric] for run in runs) for name in names}
    return max(means.items(), key=lambda pair: pair[1]) if means else ("-", float("nan"))


def gain(runs, metric, kind):
    """The mean difference and the widest bounds of the seeds' paired intervals."""
    found = [
        run["gains"][f"{metric} over {kind}"][1:] for run in runs if f"{metric} over {kind}" in run["gains"]
    ]
    if not found:
        return "-"
    middle, low, high = mean(f[0] for f in found), min(f[1] for f in found), max(f[2] for f in found)
    return f"{middle:+.2f} ({low:+.2f} .. {high:+.2f})"


def line(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(*cells):
    line(*cells)
    line(*["---"] * len(cells))


def main():
    by_data = defaultdict(list)
    for run in json.loads(Path(sys.argv[1]).read_text()):
        by_data[run["data"]].append(run)
    header("data", "seeds", "metric", "blend", "best member", "difference", "best peer", "difference")
    for name, runs in by_data.items():
        for metric in QUALITY:
            member, peer = best(runs, "members", metric), best(runs, "peers", metric)
            line(name, len(runs), metric, f"{mean(run['blend'][metric] for run in runs):.2f}",
                 f"{member[0]} {member[1]:.2f}", gain(runs, metric, "members"),
                 f"{peer[0]} {peer[1]:.2f}", gain(runs, metric, "peers"))  # fmt: skip
    print()
    header("data", "PSP@1/3/5", "tail", "best peer", "R@5 head", "tail", "R@5 of rare labels", "tail")
    for name, runs in by_data.items():
        plain, tail = (
            "/".join(f"{mean(run[kind][m] for run in runs):.2f}" for m in TAIL) for kind in ("blend", "tail")
        )
        peers = "/".join(f"{best(runs, 'peers', m)[1]:.2f}" for m in TAIL)
        recall = [f"{mean(run['head to tail'][way][part] for run in runs):.2f}"
                  for part in ("head", "tail") for way in ("precision", "tail")]  # fmt: skip
        line(name, plain, tail, peers, *recall)
    print()
    header("data", "calibration error before", "after", "micro-F1 at the chosen threshold", "at 0.5", "top 5")
    for name, runs in by_data.items():
        errors = [f"{mean(run['ece'][when] for run in runs):.4f}" for when in ("before", "after")]
        f1 = [f"{mean(run['microF1'][what] for run in runs):.2f}" for what in ("chosen", "0.5", "top 5")]
        line(name, *errors, *f1)


if __name__ == "__main__":
    main()
