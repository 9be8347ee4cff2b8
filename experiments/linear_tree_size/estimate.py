"""Estimates against the truth: bytes, peak memory and time of label trees.

    python -m experiments.linear_tree_size.estimate [--sets bibtex,...] [--settings default,...] [--seeds 3]

Every estimate and every training runs in a process of its own, since peak memory is the process's. Columns: bytes of
the saved model (MB); estimate over truth for bytes, peak and seconds, with the ends of the band, and whether the truth
lies within it; `cost` is the time of the estimate over that of the training. Times are CPU times, which other work on
the machine changes little. The constants of the estimate were chosen with `--first-seed 10`; the report has the seeds
0, 1 and 2.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import Options, kept, model_bytes
from experiments.linear_tree_size import apart, main, saved
from experiments.settings import key_with
from labelwood import LinearTree
from labelwood.data import load
from labelwood.resources import memory

SETTINGS = {
    "default": {},
    "every weight": {"weight_threshold": None},
    "three trees": {"n_trees": 3},
    "paper": dict(LinearTree.PRESETS["paper"]),
}
NAMES = {"model_bytes": "bytes", "peak_bytes": "peak", "seconds": "seconds"}


def one(path: str, parameters: dict[str, Any], mode: str) -> dict[str, Any]:
    """One estimate or training in this process."""
    train = load(path, label_names=False)
    model = LinearTree(**parameters)
    start = time.process_time()
    if mode == "estimate":
        found = model.estimate(train.X, train.Y.to_scipy())
        return {**found.facts(), "cost": time.process_time() - start}
    model.fit(train.X, train.Y.to_scipy())
    seconds, peak = time.process_time() - start, memory.peak_resident()
    return {"bytes": model_bytes(model, whole=True), "peak": peak, "seconds": seconds}


def compared(path: Path, setting: str, seed: int, threads: int) -> dict[str, float]:
    """Estimates over truth, and what the estimate costs."""
    parameters = {**SETTINGS[setting], "random_state": seed, "n_jobs": threads}
    fit, estimate = (apart("estimate", str(path), parameters, mode) for mode in ("fit", "estimate"))
    found = {"MB": fit["bytes"] / 1e6}
    for key, truth in NAMES.items():
        value = estimate[key]
        found[truth] = value["value"] / fit[truth]
        found[f"{truth}, low"], found[f"{truth}, high"] = (value["low"] / fit[truth], value["high"] / fit[truth])
        found[f"{truth} in band"] = float(value["low"] <= fit[truth] <= value["high"])
    return {**found, "cost": estimate["cost"] / fit["seconds"]}


def table(options: Options, folder: Path) -> list[dict[str, Any]]:
    """A row per data set and setting."""
    options.seeds = range(options.extra.first_seed, options.extra.first_seed + len(options.seeds))
    rows = []
    for split, path in saved(options, folder):
        for setting in options.extra.settings.split(","):
            key = key_with("linear-tree", split.name, options, **SETTINGS[setting])
            found = kept(
                options,
                {**key, "what": "estimates", "threads": options.threads},
                lambda seed, s=setting, p=path: compared(p, s, seed, options.threads),
            )
            rows.append({"data, setting": f"{split.title}, {setting}", **found})
            print(rows[-1], file=sys.stderr, flush=True)
    for truth in NAMES.values():
        hits = np.concatenate([row[f"{truth} in band"] for row in rows])
        print(f"{truth}: {hits.sum():.0f} of {len(hits)} in the band", file=sys.stderr)
    return rows


def flags(parser: Any) -> None:
    """The flags of this script."""
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--first-seed", type=int, default=0)


if __name__ == "__main__":
    titles = ("Linear tree size: estimated against true", "Estimate over truth")
    main("estimate", __doc__, titles, one=one, table=table, extra=flags)
