"""The size of the warm-up sample (the paper's Appendix G): OPLT-W, and IPLT trained on the sample alone.

    python -m experiments.oplt.warm_start

OPLT-W clusters the labels of the sample into a first tree, learns the sample, then the other rows. IPLT learns the
sample on a tree of the sample's labels and never sees the other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import QUALITY, Dataset, Options, Runs, Split, chosen, kept, measured, parse, taken
from experiments.oplt.table2 import incremental
from experiments.report import Report, draw
from experiments.settings import alone, key_with
from labelwood import OnlineTree, TreeEstimator

SHARES = (0.05, 0.1, 0.2, 0.5)


def warm(split: Split, options: Options, share: float) -> Runs:
    """OPLT-W, one pass."""
    return alone("online-tree", split, options, warm_share=share)


def sample_only(split: Split, options: Options, share: float) -> Runs:
    """IPLT on a random sample of the training rows, one pass."""

    def learn(model: TreeEstimator, rows: Dataset) -> Any:
        order = np.random.default_rng(int(model.random_state)).permutation(rows.n_rows)
        return incremental(model, taken(rows, np.sort(order[: round(share * rows.n_rows)])))

    def one(seed: int) -> dict[str, float]:
        return measured(OnlineTree(n_jobs=options.threads, random_state=seed), split, learn)

    return kept(options, {**key_with("online-tree", split.name, options), "IPLT on a share": share}, one)


def main() -> None:
    """Run both for every share on every set."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k"))
    report = Report("oplt", "warm_start", "OPLT, Appendix G: size of the warm-up sample", options)
    shares = SHARES[:2] if options.quick else SHARES
    for name, axis in zip(options.sets, report.axes(len(options.sets)), strict=True):
        split, rows = options.load(name), []
        for title, runs in (("OPLT-W", warm), ("IPLT, sample only", sample_only)):
            found = [runs(split, options, share) for share in shares]
            for share, figures in zip(shares, found, strict=True):
                told = chosen(figures, (*QUALITY, "train, CPU s", "depth"))
                rows.append({"": title, "share of the rows": share, **told})
            draw(axis, shares, [figures["P@1"] for figures in found], title)
        report.table(split.title, rows)
        axis.set(xlabel="share of the rows in the sample", ylabel="P@1, percent", title=split.title)
        axis.legend()
    report.write()


if __name__ == "__main__":
    main()
