"""Estimates against the truth: bytes, peak memory and time of label trees, in both grades.

    python -m experiments.linear_tree_size.estimate [--sets bibtex,...] [--settings default,...] [--seeds 1]

Every estimate and every training runs in a process of its own, since peak memory is the process's. Columns: bytes of
the saved model (MB), then estimate over truth for bytes, peak and seconds; `cost` is the time of the estimate over
that of the training, `added` the same without growing the tree, which a training that follows uses.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

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
    start = time.perf_counter()
    if mode != "fit":
        found = model.estimate(train.X, train.Y.to_scipy(), grade=mode)
        return {**found.facts(), "seconds_taken": time.perf_counter() - start}
    model.fit(train.X, train.Y.to_scipy())
    seconds, peak = time.perf_counter() - start, memory.peak_resident()
    grow = sum(model.fit_seconds_.get(name, 0.0) for name in ("label vectors", "cluster"))
    return {"bytes": model_bytes(model), "peak": peak, "seconds": seconds, "grow": grow}


def compared(path: Path, setting: str, seed: int, threads: int) -> dict[str, float]:
    """Estimates over truth, and what the estimates cost."""
    runs = {}
    for mode in ("fit", "exact", "quick"):
        parameters = {**SETTINGS[setting], "random_state": seed, "n_jobs": threads}
        runs[mode] = apart("estimate", str(path), parameters, mode)
    fit = runs["fit"]
    found = {"MB": fit["bytes"] / 1e6}
    for grade in ("exact", "quick"):
        for key, truth in NAMES.items():
            value = runs[grade][key]
            found[f"{grade}: {truth}"] = value["value"] / fit[truth]
            found[f"{grade}: {truth} in band"] = float(value["low"] <= fit[truth] <= value["high"])
        found[f"{grade}: cost"] = runs[grade]["seconds_taken"] / fit["seconds"]
    grown = fit["grow"] / SETTINGS[setting].get("n_trees", 1)
    found["exact: added"] = (runs["exact"]["seconds_taken"] - grown) / fit["seconds"]
    return found


def table(options: Options, folder: Path) -> list[dict[str, Any]]:
    """A row per data set and setting."""
    rows = []
    for split, path in saved(options, folder):
        for setting in options.extra.settings.split(","):
            key = key_with("linear-tree", split.name, options, **SETTINGS[setting])
            found = kept(
                options,
                {**key, "what": "estimates", "threads": options.threads},
                lambda seed, s=setting, p=path: compared(p, s, seed, options.threads),
            )
            ends = {f"exact: bytes, {end.__name__}": end(found["exact: bytes"]) for end in (min, max)}
            rows.append({"data, setting": f"{split.title}, {setting}", **found, **ends})
    return rows


def flags(parser: Any) -> None:
    """The flags of this script."""
    parser.add_argument("--settings", default=",".join(SETTINGS))


if __name__ == "__main__":
    titles = ("Linear tree size: estimated against true", "Estimate over truth")
    main("estimate", __doc__, titles, one=one, table=table, extra=flags)
