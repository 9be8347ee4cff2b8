"""Budgets against measured memory: every method is trained under the smallest `max_memory` that it accepts.

    python -m experiments.linear_tree_size.budget [--sets bibtex,...] [--methods "linear-tree;..."] [--trees 5]

Every estimate and every training runs in a process of its own, since peak memory is the process's. The smallest budget
is the upper end of the estimate's peak, asked for again by the refusal if the training's process holds more when it
starts. Columns: the budget in MB; the measured peak over it, which must not exceed 1; estimate over truth of peak and
bytes; how long a refusal (half of the budget) took over the training, and whether it gave advice; and, where that names
a setting that fits, whether the training with this setting stayed within half of the budget. Forests have `--trees`
trees.
"""

from __future__ import annotations

import math
import re
import sys
import time
from pathlib import Path
from typing import Any

from experiments.common import Options, kept, literal, model_bytes
from experiments.linear_tree_size import apart, main, saved
from experiments.settings import key_with
from labelwood import METHODS, LabelwoodError
from labelwood.data import load
from labelwood.resources import memory

VARIANTS = {
    "linear-tree, every weight": ("linear-tree", {"weight_threshold": None}),
    "linear-tree, three trees": ("linear-tree", {"n_trees": 3}),
}
ADVISED = re.compile(r"what fits: (\w+=[^ ]+) takes")
NEEDED = re.compile(r"needs up to ([0-9.]+) (kB|MB|GB) of memory")


def one(path: str, method: str, parameters: dict[str, Any], budget: int | None) -> dict[str, Any]:
    """One estimate (no budget) or training in this process."""
    train = load(path, label_names=False)
    model, start = METHODS[method](**parameters), time.perf_counter()
    if budget is None:
        return model.estimate(train.X, train.Y.to_scipy()).facts()
    try:
        model.fit(train.X, train.Y.to_scipy(), max_memory=budget)
    except LabelwoodError as error:
        return {"refused": str(error), "seconds": time.perf_counter() - start}
    seconds, peak = time.perf_counter() - start, memory.peak_resident()
    return {"bytes": model_bytes(model, whole=True), "peak": peak, "seconds": seconds}


def compared(path: Path, method: str, parameters: dict[str, Any]) -> dict[str, float]:
    """The smallest budget that is accepted, and what the training under it held."""
    found = apart("budget", str(path), method, parameters, None)
    budget = round(found["peak_bytes"]["high"])
    while "refused" in (fit := apart("budget", str(path), method, parameters, budget)):
        number, unit = NEEDED.search(fit["refused"]).groups()
        needed = float(number) * memory.parse_bytes(f"1{unit}", owner="budget", name="unit")
        budget = round(max(1.02 * budget, needed))
    refusal = apart("budget", str(path), method, parameters, budget // 2)
    advised, is_kept = ADVISED.search(refusal["refused"]), math.nan
    if advised:
        name, value = literal(advised[1])
        smaller = apart("budget", str(path), method, {**parameters, name: value}, budget // 2)
        is_kept = float(smaller.get("peak", math.inf) <= budget // 2)
    return {
        "budget, MB": budget / 1e6,
        "peak over budget": fit["peak"] / budget,
        "estimated over true peak": found["peak_bytes"]["value"] / fit["peak"],
        "estimated over true bytes": found["model_bytes"]["value"] / fit["bytes"],
        "refusal over training, time": refusal["seconds"] / fit["seconds"],
        "advice": float("takes" in refusal["refused"] or "would need less" in refusal["refused"]),
        "advised setting keeps half": is_kept,
    }


def table(options: Options, folder: Path) -> list[dict[str, Any]]:
    """A row per data set and method."""
    rows = []
    for split, path in saved(options, folder):
        for variant in options.extra.methods.split(";"):
            method, own = VARIANTS.get(variant, (variant, {}))
            if "forest" in method:
                own = {"n_trees": options.extra.trees}

            def measured(seed: int, method=method, own=own, path=path) -> dict[str, float]:
                return compared(path, method, {"n_jobs": options.threads, "random_state": seed, **own})

            key = key_with(method, split.name, options, **own)
            found = kept(options, {**key, "what": "budgets", "threads": options.threads}, measured)
            rows.append({"data, method": f"{split.title}, {variant}", **found})
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def flags(parser: Any) -> None:
    """The flags of this script."""
    parser.add_argument("--methods", default=";".join(("linear-tree", *VARIANTS, "online-tree", "craft-forest")))
    parser.add_argument("--trees", type=int, default=5)


if __name__ == "__main__":
    titles = ("Budgets against measured memory", "Smallest budget that is accepted")
    main("budget", __doc__, titles, one=one, table=table, extra=flags)
