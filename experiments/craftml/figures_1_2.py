"""Figures 1 and 2: the dimensions of the projections, and whether the nodes of a tree share them.

    python -m experiments.craftml.figures_1_2

On a held-out fifth of the training rows, as in the paper; its EURLex-4K is not here, so as many rows of eurlex57k
stand in for it.
"""

from __future__ import annotations

import numpy as np

from experiments.common import QUALITY, SHAPES, Options, Runs, Split, chosen, parse, thinned
from experiments.report import Report, draw
from experiments.settings import parameters, tried

FEATURES, LABELS = (100, 500, 1000, 2000, 5000, 10000), (50, 100, 500, 1000, 5000, 10000)
NOTE = (
    "On a held-out fifth of the training rows, another for every seed. Of eurlex57k as many rows are used as the "
    "paper's EURLex-4K has, which is not at hand."
)
DIVERSITIES, PAIRS = ("SxSy", "SxDy", "DxSy", "DxDy"), ((500, 500), (5000, 5000))


def on_held_out(split: Split, options: Options, **given) -> Runs:
    """Quality on held-out rows; every seed holds out others."""
    own = {**parameters("craft-forest", split.name), "n_trees": options.trees(50), **given}
    return chosen(tried("craft-forest", split, options, **own), QUALITY)


def stood_in(options: Options) -> list[Split]:
    """The sets, none with more training rows than the paper's largest of them has."""
    return [thinned(options.load(name), SHAPES["EURLex-4K"][0]) for name in options.sets]


def figure_1(options: Options, splits: list[Split]) -> None:
    """P@1 against d'_y, a line per d'_x, and without projection."""
    report = Report("craftml", "figure1", "CRAFTML, Figure 1: dimensions of the projections (SxDy)", options, [NOTE])
    features, labels = (FEATURES[::3], LABELS[::3]) if options.quick else (FEATURES, LABELS)
    for split, axis in zip(splits, report.axes(len(splits), width=5), strict=True):
        rows = []
        for d_x in features:
            line = [
                on_held_out(split, options, diversity="SxDy", feature_columns=d_x, label_columns=d_y) for d_y in labels
            ]
            rows += [{"d'_x": d_x, "d'_y": d_y, **found} for d_y, found in zip(labels, line, strict=True)]
            draw(axis, labels, [found["P@1"] for found in line], f"d'_x = {d_x}")
        without = on_held_out(split, options, projection="none")
        rows.append({"d'_x": "none", "d'_y": "none", **without})
        axis.axhline(np.mean(without["P@1"]), linestyle=":", color="black", label="no projection")
        axis.set(xscale="log", xlabel="d'_y", ylabel="P@1", title=split.title)
        report.table(split.title, rows)
    report.figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    report.write()


def figure_2(options: Options, splits: list[Split]) -> None:
    """P@1 of the four combinations of same and different projections."""
    report = Report("craftml", "figure2", "CRAFTML, Figure 2: diversity of the nodes", options, [NOTE])
    for split, axis in zip(splits, report.axes(len(splits), width=5), strict=True):
        rows = []
        for place, (d_x, d_y) in enumerate(PAIRS):
            given = {"feature_columns": d_x, "label_columns": d_y}
            found = {name: on_held_out(split, options, diversity=name, **given) for name in DIVERSITIES}
            rows += [{"d'_x, d'_y": f"{d_x}, {d_y}", "diversity": name, **runs} for name, runs in found.items()]
            x = np.arange(len(DIVERSITIES)) + 0.4 * place
            heights, spread = zip(
                *((np.mean(runs["P@1"]), np.std(runs["P@1"])) for runs in found.values()), strict=True
            )
            axis.bar(x, heights, 0.4, yerr=spread, capsize=3, label=f"d'_x = {d_x}, d'_y = {d_y}")
        axis.set_xticks(np.arange(len(DIVERSITIES)) + 0.2, DIVERSITIES)
        axis.set(ylabel="P@1", title=split.title)
        axis.legend(fontsize=7)
        report.table(split.title, rows)
    report.write()


def main() -> None:
    """Both figures on every set."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k"))
    splits = stood_in(options)
    figure_1(options, splits)
    figure_2(options, splits)


if __name__ == "__main__":
    main()
