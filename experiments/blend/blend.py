"""The blend beside its members and the peers: quality, calibration, sets of labels, the tail.

    python -m experiments.blend.blend --sets bibtex/xmc_split0,delicious/xmc_split0

Everything is learned on the training rows: `Blend.fit` holds out a fifth of them for weights, temperatures, calibration
and thresholds, then trains the members again on all rows. The members are the same for every data set. The peers'
predictions are those that `make versus DATA=... ARGS="--name NAME"` left in build/versus.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from experiments.common import KS, PSP, QUALITY, ROOT, Options, Split, parse
from experiments.report import Report
from experiments.settings import BLENDED
from labelwood import Blend
from labelwood.metrics import (
    calibration_error,
    evaluate,
    inverse_propensities,
    label_counts,
    paired_intervals,
    report_by_frequency,
    set_scores,
)
from labelwood.run_context import RunContext
from labelwood.scoring.thresholds import label_weights
from labelwood.sparse import CSR, TopK, from_lists

SHOWN = (*QUALITY, "nDCG@5")
WIDTH = 50  # labels that a member proposes


def peers_of(name: str) -> dict[str, TopK]:
    """The lists of five that peers predicted, by configuration."""
    found = {}
    for path in sorted((ROOT / "build" / "versus" / name.partition("/")[0] / "work").glob("*-1/predictions.npz")):
        if not path.parent.name.startswith("labelwood"):
            labels = np.load(path)["labels"].astype(np.int32)
            falling = np.broadcast_to(np.arange(labels.shape[1], 0, -1, dtype=np.float32), labels.shape)
            found[path.parent.name.removesuffix("-1")] = TopK(labels, np.where(labels >= 0, falling, np.float32(0)))
    return found


def first(top: TopK, k: int = 5) -> TopK:
    """The first k of a list."""
    return TopK(np.ascontiguousarray(top.labels[:, :k]), np.ascontiguousarray(top.scores[:, :k]))


def sets(top: TopK, threshold: float, n_labels: int) -> CSR:
    """The labels listed that reach a threshold, as a matrix."""
    rows = zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    return from_lists([[i for i, s in zip(*row, strict=True) if i >= 0 and s >= threshold] for row in rows], n_labels)


def percent(values: dict[str, float]) -> dict[str, float]:
    """Two digits."""
    return {name: round(100 * value, 2) for name, value in values.items()}


def one_run(split: Split, seed: int, options: Options) -> dict[str, Any]:
    """All figures of one training."""
    name, X, Y, X_test, Y_test = split.name, split.train.X, split.train.Y, split.test.X, split.test.Y
    members, held_out, threads = options.extra.members, options.extra.held_out, options.threads
    start = time.process_time()
    model = Blend(members, decide="micro-f1", held_out=held_out, random_state=seed, n_jobs=threads).fit(X, Y.to_scipy())
    seconds = time.process_time() - start
    run = RunContext(n_threads=threads)
    lists = [member.topk_rows(X_test, min(WIDTH, Y.n_cols), run) for member in model.members_]
    raw = model.mix_.combine(lists, min(WIDTH, Y.n_cols))
    decisions = model._decisions
    blended = decisions.apply(raw, WIDTH, None)
    counts = label_counts(Y)
    inverse = inverse_propensities(counts, Y.n_rows)
    weights = label_weights("tail", counts, Y.n_rows, strength=decisions.strength)
    tail = first(decisions.apply(raw, WIDTH, weights))

    def figures(top):
        found = evaluate(Y_test, top, KS, inv_propensity=inverse)
        return {key: found[key] for key in (*SHOWN, *PSP)}

    names = [f"{m['method']} " + " ".join(f"{k}={v}" for k, v in m.items() if k != "method") for m in members]
    single = {label.strip(): first(top) for label, top in zip(names, lists, strict=True)}
    peers = {} if options.quick else peers_of(name)  # theirs are lists of all test rows
    tables = {
        kind: {label: figures(top) for label, top in group.items()}
        for kind, group in (("members", single), ("peers", peers))
    }
    mine = figures(first(blended))
    beside = {}
    for kind, group in (("members", single), ("peers", peers)):
        for metric in SHOWN if group else ():
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
        "data": name,
        "seed": seed,
        "cpu_seconds": round(seconds, 1),
        "mix": model.describe(),
        "held_out": model.held_out_,
        "calibration": decisions.calibration.kind,
        "groups": decisions.calibration.n_groups,
        "threshold": decisions.threshold,
        "strength": decisions.strength,
        "blend": percent(mine),
        "tail": percent(figures(tail)),
        **{kind: {label: percent(values) for label, values in group.items()} for kind, group in tables.items()},
        "gains": beside,
        "ece": {
            "before": round(calibration_error(Y_test, first(raw)), 4),
            "after": round(calibration_error(Y_test, first(blended)), 4),
            "members": [round(calibration_error(Y_test, top), 4) for top in single.values()],
        },
        "microF1": {what: round(100 * set_scores(Y_test, found)["microF1"], 2) for what, found in cut.items()},
        "head to tail": {
            what: {
                part: round(100 * values["R@5"], 2)
                for part, values in report_by_frequency(Y_test, top, counts, (5,)).items()
            }
            for what, top in (("precision", first(blended)), ("tail", tail))
        },
    }


def best(runs: list[dict[str, Any]], kind: str, metric: str) -> str:
    """The best of the members or peers by its mean."""
    names = set.intersection(*(set(run[kind]) for run in runs))
    means = {name: float(np.mean([run[kind][name][metric] for run in runs])) for name in names}
    name = max(means, key=lambda key: means[key], default="-")
    return f"{name} {means[name]:.2f}" if means else "-"


def gain(runs: list[dict[str, Any]], metric: str, kind: str) -> str:
    """The mean difference and the widest bounds of the seeds' paired intervals."""
    key = f"{metric} over {kind}"
    found = [run["gains"][key][1:] for run in runs if key in run["gains"]]
    if not found:
        return "-"
    middle, low, high = np.mean([f[0] for f in found]), min(f[1] for f in found), max(f[2] for f in found)
    return f"{middle:+.2f} ({low:+.2f} .. {high:+.2f})"


def tables(report: Report, title: str, runs: list[dict[str, Any]]) -> None:
    """Quality, the tail, and calibration of one data set."""
    report.table(
        f"{title}: quality",
        [
            {
                "metric": metric,
                "blend": [run["blend"][metric] for run in runs],
                "best member": best(runs, "members", metric),
                "difference": gain(runs, metric, "members"),
                "best peer": best(runs, "peers", metric),
                "difference to it": gain(runs, metric, "peers"),
            }
            for metric in SHOWN
        ],
    )
    report.table(
        f"{title}: the tail",
        [
            {
                "metric": metric,
                "for precision": [run["blend"][metric] for run in runs],
                "for the tail": [run["tail"][metric] for run in runs],
                "best peer": best(runs, "peers", metric),
            }
            for metric in PSP
        ]
        + [
            {
                "metric": f"R@5 of the {part}",
                "for precision": [run["head to tail"]["precision"][part] for run in runs],
                "for the tail": [run["head to tail"]["tail"][part] for run in runs],
            }
            for part in ("head", "tail")
        ],
    )
    report.table(
        f"{title}: calibration and sets",
        [
            {
                "calibration error before": [run["ece"]["before"] for run in runs],
                "after": [run["ece"]["after"] for run in runs],
                **{f"micro-F1, {what}": [run["microF1"][what] for run in runs] for what in ("chosen", "0.5", "top 5")},
                "CPU s": [run["cpu_seconds"] for run in runs],
            }
        ],
    )


def main() -> None:
    """Run every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--members", type=json.loads, default=BLENDED, help="JSON instead of the default members")
        parser.add_argument("--held-out", type=float, default=0.2)

    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"), extra=extra)
    report = Report("blend", "blend", "The blend beside its members and the peers", options)
    for name in options.sets:
        split = options.load(name)
        tables(report, split.title, [one_run(split, seed, options) for seed in options.seeds])
    report.write()


if __name__ == "__main__":
    main()
