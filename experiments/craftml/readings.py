"""Quality of CraftForest under different parameters, on held-out training rows of several data sets at once.

    python -m experiments.craftml.readings --setting "" --setting "arity=5" --setting "centroid_share=0.7 arity=5"

Each --setting is a row; every seed holds out another fifth of the training rows and judges by it.
"""

from __future__ import annotations

import sys
from typing import Any

from experiments.common import QUALITY, chosen, literal, parse
from experiments.report import Report, shown
from experiments.settings import tried


def main() -> None:
    """Judge every setting on every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--setting", action="append", help="parameters, as in 'arity=5 idf=False'")
        parser.add_argument("--trees", type=int, default=50)

    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k"), extra=extra)
    report = Report("craftml", "readings", "CRAFTML: readings, held-out rows", options)
    splits = {name: options.load(name) for name in options.sets}
    for name, split in splits.items():
        rows = []
        for setting in options.extra.setting or [""]:
            given = {"n_trees": options.trees(options.extra.trees), **dict(literal(pair) for pair in setting.split())}
            found = tried("craft-forest", split, options, **given)
            rows.append({"setting": setting or "defaults", **chosen(found, (*QUALITY, "train, CPU s", "MB"))})
            print(name, *(shown(cell) for cell in rows[-1].values()), sep=", ", file=sys.stderr, flush=True)
        report.table(name, rows)
    report.write()


if __name__ == "__main__":
    main()
