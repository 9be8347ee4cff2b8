"""The size of the warm-up sample (the paper's Appendix G): OPLT-W, and IPLT trained on the sample alone.

    python -m experiments.oplt.warm_start

OPLT-W clusters the labels of the sample into a first tree, learns the sample, then the other rows. IPLT learns the
sample on a tree of the sample's labels and never sees the other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import QUALITY, Dataset, Options, Runs, Split, chosen, kept, measured, parse, taken
from experiments.oplt.passes import once
from experiments.oplt.table2 import incremental
from experiments.report import Report
from experiments.settings import key_with
from labelwood import OnlineTree, TreeEstimator

SHARES = (0.05, 0.1, 0.2, 0.5)


def warm(split: Split, options: Options, share: float) -> Runs:
    """OPLT-W, one pass."""
    return once(split, options, warm_share=share)


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
    for name in options.sets:
        split, rows = options.load(name), []
        for share in SHARES[:2] if options.quick else SHARES:
            for title, runs in (("OPLT-W", warm), ("IPLT, sample only", sample_only)):
                found = chosen(runs(split, options, share), (*QUALITY, "train, CPU s", "depth"))
                rows.append({"": title, "share of the rows": share, **found})
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
