"""Active learning: rows chosen by doubt against rows at random, from 500 labelled rows of eurlex57k.

    python -m experiments.active.choose --held-out         # compares orders on held-out training rows
    python -m experiments.active.choose --write            # the figure: test rows, three seeds; writes the record

A LinearTree learns from the first 500 rows, drawn by the seed. Then 2,000 more rows are labelled in rounds of 250, each
chosen from the rows that are left by the model of the round before, or at random. Prints P@k after each round.
``doubt`` is the order of ``labelwood review``: :mod:`labelwood.scoring.doubt` over the ten best labels.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.common import KS, ROOT
from labelwood import LinearTree, metrics
from labelwood.data import Dataset, load
from labelwood.scoring.doubt import doubt, doubtful_first
from labelwood.sparse import CSR, F32, I64, TopK

DATA = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data"))
RECORD = ROOT / "experiments" / "records" / "active.json"
FIRST, MORE, ROUND, LISTED = 500, 2000, 250, 10
HELD_OUT = 5000


def mistakes(top: TopK) -> F32:
    """The expected number of wrong decisions about the listed labels."""
    found: F32 = np.minimum(top.scores, 1 - top.scores).sum(axis=1)
    return found


def least_sure(top: TopK) -> F32:
    """One minus the best score."""
    return 1 - top.scores[:, 0]


def entropy(top: TopK) -> F32:
    """The entropy of the listed labels, each on its own."""
    sure = np.clip(top.scores, 1e-6, 1 - 1e-6)
    found: F32 = -(sure * np.log(sure) + (1 - sure) * np.log(1 - sure)).sum(axis=1)
    return found


def by(measure: Callable[[TopK], F32]) -> Callable[[TopK], I64]:
    """The rows in the order of a measure, the largest first."""
    return lambda top: np.argsort(-measure(top), kind="stable")


def spread(measure: Callable[[TopK], F32]) -> Callable[[TopK], I64]:
    """The largest row of each best label, then the second of each, and so on."""

    def order(top: TopK) -> I64:
        first = by(measure)(top)
        best = top.labels[first, 0]
        grouped = np.argsort(best, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(best[grouped]) != 0])
        place = np.empty(len(first), np.int64)
        place[grouped] = np.arange(len(first)) - np.repeat(starts, np.diff(np.r_[starts, len(first)]))
        found: I64 = first[np.argsort(place, kind="stable")]
        return found

    return order


ORDERS: dict[str, Callable[[TopK], I64] | None] = {
    "random": None, "doubt": lambda top: doubtful_first(doubt(top), seed=0), "most-doubtful": by(doubt),
    "mistakes": by(mistakes), "least-sure": by(least_sure), "entropy": by(entropy), "spread-mistakes": spread(mistakes),
}  # fmt: skip


def main() -> None:
    """Run what is asked for, and print a line of JSON for each round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="measure on held-out training rows")
    parser.add_argument("--measures", help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the record")
    options = parser.parse_args()
    names = (
        options.measures
        or (
            "random,doubt,most-doubtful,mistakes,least-sure,entropy,spread-mistakes"
            if options.held_out
            else "random,doubt"
        )
    ).split(",")
    train, test = (load(DATA / "eurlex57k" / f"{part}.txt.xz") for part in ("train", "test"))
    if options.held_out:
        order = np.random.default_rng(2026).permutation(train.n_rows)
        train, test = (Dataset(train.X.take(rows), train.Y.take(rows)) for rows in (order[HELD_OUT:], order[:HELD_OUT]))
    found: dict[str, list[dict[str, list[float]]]] = {}
    for name in names:
        for seed in range(options.seeds):
            curve = labelled_in_rounds(train.X, train.Y, test, name, seed)
            found.setdefault(name, []).append(curve)
    if options.write:
        facts = {"data": "eurlex57k", "first": FIRST, "more": MORE, "round": ROUND, "seeds": options.seeds}
        RECORD.write_text(json.dumps({**facts, "curves": found}, indent=1) + "\n")


def labelled_in_rounds(X: CSR, Y: CSR, test: Dataset, name: str, seed: int) -> dict[str, list[float]]:
    """P@k on the test rows after each round."""
    random = np.random.default_rng(seed)
    order = random.permutation(X.n_rows)
    chosen, left = order[:FIRST], order[FIRST:]
    curve: dict[str, list[float]] = {f"P@{k}": [] for k in KS}
    for n_rows in range(FIRST, FIRST + MORE + 1, ROUND):
        model = LinearTree(n_jobs=1, random_state=seed).fit(X.take(chosen), Y.take(chosen))
        judged = metrics.evaluate(test.Y, model.topk_ids(test.X, max(KS)), KS)
        for metric, values in curve.items():
            values.append(round(100 * judged[metric], 2))
        print(
            json.dumps({"chosen": name, "seed": seed, "rows": n_rows, **{m: v[-1] for m, v in curve.items()}}),
            flush=True,
        )
        taken = next_rows(model, X, left, ORDERS[name])
        chosen, left = np.concatenate([chosen, left[taken]]), np.delete(left, taken)
    return curve


def next_rows(model: LinearTree, X: CSR, left: I64, order: Callable[[TopK], I64] | None) -> I64:
    """The places, among the rows that are left, of those to label next."""
    if order is None:
        return np.arange(ROUND)  # the rows are in random order
    return order(model.topk_ids(X.take(left), LISTED))[:ROUND]


if __name__ == "__main__":
    main()
