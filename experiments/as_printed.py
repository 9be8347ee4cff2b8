"""A method as its paper prints it, as we run it, and the paper's own figures, on Bibtex and Delicious.

The scripts ``printed.py`` of the papers call it. "As printed" is the preset of the paper alone; "ours" has the
parameters of settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.common import AT_HAND, QUALITY, chosen, parse
from experiments.report import Report
from experiments.settings import alone, is_forest, parameters, runs
from labelwood import METHODS

COLUMNS = (*QUALITY, "train, CPU s", "predict, ms", "MB", "depth")


def write(
    doc: str | None,
    paper: str,
    method: str,
    published: Mapping[str, tuple[float, ...]],
    besides: Mapping[str, Mapping[str, dict[str, Any]]] | None = None,
) -> None:
    """Run a method both ways on every set and write the tables.

    ``published`` has P@1, 3 and 5 by data set; ``besides`` has further rows by data set, as changes of ours.
    """
    options = parse(doc, sets=AT_HAND[:2])
    report = Report(paper, "printed", f"{METHODS[method].__name__}: as printed, ours, the paper", options)
    report.notes.append(f'As printed: `{METHODS[method].__name__}.preset("paper")`; ours: `experiments/settings.py`.')
    if not published:
        report.notes.append("The paper has no figures of these two sets.")
    for name in options.sets:
        split = options.load(name)
        trees = {"n_trees": options.trees(parameters(method, name)["n_trees"])} if is_forest(method) else {}
        printed = alone(method, split, options, **{**METHODS[method].PRESETS["paper"], **trees})
        rows = [{"": "as printed", **chosen(printed, COLUMNS)}]
        for title, changes in {"ours": {}, **(besides or {}).get(name, {})}.items():
            rows.append({"": title, **chosen(runs(method, split, options, **{**changes, **trees}), COLUMNS)})
        if name in published:
            rows.append({"": "the paper", **dict(zip(QUALITY, published[name], strict=True))})
        report.table(split.title, rows)
    report.write()
