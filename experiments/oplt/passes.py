"""One pass or three (the paper's Appendix E): online trees by policy, quality and training time.

python -m experiments.oplt.passes
"""

from __future__ import annotations

from experiments.common import QUALITY, chosen, parse
from experiments.oplt.table2 import ONLINE
from experiments.report import Report, draw
from experiments.settings import alone

PASSES = (1, 2, 3, 5)


def main() -> None:
    """Run every policy with every number of passes, with the parameters of Table 2."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"))
    report = Report("oplt", "passes", "OPLT, Appendix E: passes over the training rows", options)
    passes = PASSES[:2] if options.quick else PASSES
    for name, axis in zip(options.sets, report.axes(len(options.sets)), strict=True):
        split, rows = options.load(name), []
        for title, given in ONLINE.items():
            found = [alone("online-tree", split, options, **given, epochs=count) for count in passes]
            for count, runs in zip(passes, found, strict=True):
                rows.append({"": title, "passes": count, **chosen(runs, (*QUALITY, "train, CPU s", "depth"))})
            draw(axis, passes, [runs["P@1"] for runs in found], title)
        report.table(split.title, rows)
        axis.set(xlabel="passes", ylabel="P@1, percent", title=split.title)
        axis.legend()
    report.write()


if __name__ == "__main__":
    main()
