"""Any method with any parameters on any data sets: quality, time, size and depth over the seeds.

    python -m experiments.measure linear-tree --sets bibtex/xmc_split0,eurlex57k
    python -m experiments.measure ldsm-forest --sets eurlex57k --set n_trees=5 --set max_nodes=2000 --held-out

Parameters are those of settings.py, changed by --set. With --held-out, a fifth of the training rows replaces the test
rows, another fifth for each seed: parameters are chosen on these. Stored runs, with their times, are not repeated
without --again.
"""

from __future__ import annotations

from typing import Any

from experiments.common import AT_HAND, literal, parse
from experiments.report import Report
from experiments.settings import parameters, runs, tried
from labelwood import METHODS


def main() -> None:
    """Measure and write a table."""

    def extra(parser: Any) -> None:
        parser.add_argument("method", choices=METHODS)
        parser.add_argument("--set", action="append", default=[], type=literal, metavar="NAME=VALUE", dest="given")
        parser.add_argument("--held-out", action="store_true")

    options = parse(__doc__, sets=AT_HAND, extra=extra)
    method, changes, rows = options.extra.method, dict(options.extra.given), []
    for name in options.sets:
        split = options.load(name)
        given = {**parameters(method, name), **changes}
        if "n_trees" in given:
            given["n_trees"] = options.trees(given["n_trees"])

        found = (tried if options.extra.held_out else runs)(method, split, options, **given)
        said = " ".join(f"{key}={value}" for key, value in given.items()) or "defaults"
        rows.append({"data": split.title, "parameters": f"`{said}`", **found})
    report = Report("measure", method, f"{method}{', held-out rows' * options.extra.held_out}", options)
    report.table(method, rows)
    report.write()


if __name__ == "__main__":
    main()
