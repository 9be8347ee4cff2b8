"""Figures 3 and 4, and the size of the sample: trees against dimensions, rows of a leaf, rows drawn for a node.

    python -m experiments.craftml.figures_3_4

On a held-out fifth of the training rows, as in the paper. Figure 3 keeps m_F x d'_x fixed; Figure 4 judges one tree
(over ten times as many seeds) and the forest.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.common import Options, Split, parse
from experiments.craftml.figures_1_2 import NOTE, on_held_out, stood_in
from experiments.report import Report, draw

BUDGETS, TREES = (5_000, 50_000, 500_000), (1, 2, 5, 10, 20, 50, 100)
LEAVES = (2, 5, 10, 20, 50)
SAMPLES = (100, 500, 2_000, 10_000, 20_000)


def figure_3(options: Options, splits: list[Split]) -> None:
    """P@1 against the number of trees at constant m_F x d'_x."""
    title = "CRAFTML, Figure 3: trees against dimensions at equal cost"
    report = Report("craftml", "figure3", title, options, [NOTE])
    for split, axis in zip(splits, report.axes(len(splits), width=5), strict=True):
        rows = []
        for budget in BUDGETS[:2] if options.quick else BUDGETS:
            counts = [n for n in (TREES[:4] if options.quick else TREES) if budget // n >= 10]
            line = [on_held_out(split, options, n_trees=n, feature_columns=budget // n) for n in counts]
            rows += [{"m_F d'_x": budget, "m_F": n, "d'_x": budget // n, **found}
                     for n, found in zip(counts, line, strict=True)]  # fmt: skip
            draw(axis, counts, [found["P@1"] for found in line], f"m_F d'_x = {budget}")
        axis.set(xscale="log", xlabel="trees m_F", ylabel="P@1", title=split.title)
        axis.legend(fontsize=7)
        report.table(split.title, rows)
    report.write()


def one_against_another(options: Options, splits: list[Split], name: str, title: str, parameter: str, values) -> None:
    """P@1 of one tree and of the forest against a parameter."""
    report = Report("craftml", name, title, options, [NOTE])
    axes = iter(report.axes(2, len(splits), width=5))
    more = replace(options, seeds=range(len(options.seeds) * (2 if options.quick else 10)))
    for split in splits:
        for n_trees, runs in ((1, more), (options.trees(50), options)):
            line = [on_held_out(split, runs, n_trees=n_trees, **{parameter: value}) for value in values]
            report.table(f"{split.title}, {n_trees} tree{'s' * (n_trees > 1)}, {len(runs.seeds)} seeds",
                         [{parameter: value, **found} for value, found in zip(values, line, strict=True)])  # fmt: skip
            axis = next(axes)
            draw(axis, values, [found["P@1"] for found in line])
            axis.set(xscale="log", xlabel=parameter, ylabel="P@1", title=f"{split.title}, m_F = {n_trees}")
    report.write()


def main() -> None:
    """All three on every set."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k"))
    splits = stood_in(options)
    figure_3(options, splits)
    one_against_another(options, splits, "figure4", "CRAFTML, Figure 4: rows of a leaf", "max_leaf", LEAVES)
    title = "CRAFTML, impact of the sample size n_s"
    one_against_another(options, splits, "sample_size", title, "sample", SAMPLES)


if __name__ == "__main__":
    main()
