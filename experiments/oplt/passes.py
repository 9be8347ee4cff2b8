"""One pass or three (the paper's Appendix E): online trees by policy, quality and training time.

python -m experiments.oplt.passes
"""

from __future__ import annotations

from typing import Any

from experiments.common import QUALITY, Options, Runs, Split, chosen, kept, measured, parse
from experiments.oplt.table2 import ONLINE
from experiments.report import Report
from experiments.settings import key_with
from labelwood import OnlineTree

PASSES = (1, 2, 3, 5)


def once(split: Split, options: Options, **given: Any) -> Runs:
    """Online learning with these parameters alone."""

    def one(seed: int) -> dict[str, float]:
        return measured(OnlineTree(n_jobs=options.threads, random_state=seed, **given), split)

    return kept(options, key_with("online-tree", split.name, options, **given), one)


def main() -> None:
    """Run every policy with every number of passes, with the parameters of Table 2."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k"))
    report = Report("oplt", "passes", "OPLT, Appendix E: passes over the training rows", options)
    for name in options.sets:
        split, rows = options.load(name), []
        for title, given in ONLINE.items():
            for passes in PASSES[:2] if options.quick else PASSES:
                found = once(split, options, **given, epochs=passes)
                rows.append({"": title, "passes": passes, **chosen(found, (*QUALITY, "train, CPU s", "depth"))})
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
