"""How far the split moves FastXML's quality on Bibtex: as printed, on random splits of all rows.

    python -m experiments.fastxml.splits

Training and test rows are put together and parted anew at random into as many of each, another time for every seed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from experiments.common import QUALITY, Split, chosen, kept, measured, parse, taken
from experiments.report import Report
from experiments.settings import key_with
from labelwood import FastXmlForest
from labelwood.data import Dataset
from labelwood.sparse import from_scipy


def parted_anew(split: Split, seed: int) -> Split:
    """As many training and test rows, drawn from both."""
    both = (split.train, split.test)
    rows = Dataset(*(from_scipy(sp.vstack([getattr(part, m).to_scipy() for part in both], "csr")) for m in "XY"))
    order = np.random.default_rng(seed).permutation(rows.n_rows)
    cut = split.train.n_rows
    return replace(split, train=taken(rows, np.sort(order[:cut])), test=taken(rows, np.sort(order[cut:])))


def main() -> None:
    """Run the printed form on every split and write the table."""
    options = parse(__doc__, sets=("bibtex/xmc_split0",), seeds=5)
    report = Report("fastxml", "splits", "FastXML as printed: random splits", options)
    rows = []
    for name in options.sets:
        split = options.load(name)
        printed = {**FastXmlForest.PRESETS["fastxml"], "n_trees": options.trees(50)}

        def one(seed: int, split: Split = split, printed: dict = printed) -> dict[str, float]:
            forest = FastXmlForest(**printed, n_jobs=options.threads, random_state=seed)
            return measured(forest, parted_anew(split, seed))

        key = {**key_with("fastxml-forest", name, options, **printed), "split": "random"}
        rows.append({"rows of": split.title, **chosen(kept(options, key, one), QUALITY)})
    report.table("Mean over the splits", rows)
    report.write()


if __name__ == "__main__":
    main()
