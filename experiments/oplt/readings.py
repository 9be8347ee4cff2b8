"""Points that the OPLT paper prints otherwise or leaves open, on held-out training rows.

    python -m experiments.oplt.readings

AdaGrad's epsilon inside or outside the root. The balance term of Best-Greedy: against an even share, or as printed;
the printed term vanishes as subtrees grow and the tree becomes a comb, so few rows are taken.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.common import QUALITY, chosen, parse, thinned
from experiments.report import Report
from experiments.settings import parameters, tried

FEW_ROWS, QUICK_FEW_ROWS = 1500, 300


def main() -> None:
    """Try both places of epsilon on every set, and both balance terms on a part of it."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k", "yso_finna_en"))
    report = Report("oplt", "readings", "OPLT: epsilon and the balance term, held-out rows", options)
    columns = (*QUALITY, "train, CPU s", "depth")
    for name in options.sets:
        split = options.load(name)
        own = parameters("online-tree", name)
        report.table(
            split.title,
            [
                {"epsilon": place, **chosen(tried("online-tree", split, options, epsilon_place=place, **own), columns)}
                for place in ("inside", "outside")
            ],
        )
        few = thinned(split, QUICK_FEW_ROWS if options.quick else FEW_ROWS)
        few = replace(few, name=f"{few.name}/{few.train.n_rows} rows")
        report.table(
            f"{few.title}, leaves of 10",
            [
                {"balance": term, **chosen(tried("online-tree", few, options, balance=term, max_leaf=10), columns)}
                for term in ("even", "printed")
            ],
        )
    report.write()


if __name__ == "__main__":
    main()
