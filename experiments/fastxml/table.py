"""FastXML and PfastreXML: as printed, ours, and as published.

    python -m experiments.fastxml.table

"As printed" are the presets of FastXmlForest, with the papers' settings. "Ours" are the defaults with OURS, PFASTREXML
and BESIDES below, chosen on held-out training rows. The published figures are those of the extreme classification
repository.
"""

from __future__ import annotations

from typing import Any

from experiments.common import PSP, QUALITY, chosen, parse
from experiments.report import Report
from experiments.settings import parameters, runs
from labelwood import FastXmlForest

SETS = ("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k")
PUBLISHED = {
    "bibtex/xmc_split0": ("63.42 / 39.23 / 28.86", "63.46 / 39.22 / 29.14"),
    "delicious/xmc_split0": ("69.61 / 64.12 / 59.27", "67.13 / 62.33 / 58.62"),
}
WHO = ("FastXML", "PfastreXML")
COLUMNS = (*QUALITY, *PSP, "train, CPU s", "predict, ms", "MB", "depth")
OURS = {"delicious/xmc_split0": {"C": 1.0, "idf": False}}  # elsewhere the defaults
PFASTREXML = {"propensity": True, "rerank": True}
BESIDES = {"delicious/xmc_split0": {"tail_means": "plain", "tree_share": 0.95}}  # for PfastreXML alone


def variants(name: str) -> dict[str, dict[str, Any]]:
    """The parameters of each row that are not the defaults; the presets run on the papers' own sets."""
    own = OURS.get(name, {})
    ours = {"FastXML, ours": own, "PfastreXML, ours": {**own, **PFASTREXML, **BESIDES.get(name, {})}}
    if name not in PUBLISHED:
        return ours
    presets = FastXmlForest.PRESETS
    printed = {"FastXML, as printed": presets["fastxml"], "PfastreXML, as printed": presets["pfastrexml"]}
    return {**printed, **ours}


def main() -> None:
    """Run every variant on every set and write the tables."""
    options = parse(__doc__, sets=SETS)
    report = Report("fastxml", "table", "FastXML and PfastreXML: as printed, ours, published", options)
    for name in options.sets:
        split = options.load(name)
        trees = {"n_trees": options.trees(parameters("fastxml-forest", name)["n_trees"])}
        rows = [
            {"": title, **chosen(runs("fastxml-forest", split, options, **{**changes, **trees}), COLUMNS)}
            for title, changes in variants(name).items()
        ]
        said = [f"{who} {found}" for who, found in zip(WHO, PUBLISHED.get(name, ()), strict=False)]
        report.table(f"{split.title}; published: {', '.join(said)}" if said else split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
