"""Impact of alpha (the paper's Appendix F): balance of the tree against fit, by quality, time and depth.

    python -m experiments.oplt.alpha

Below a quarter a tree has next to no balance and grows into a chain; that is shown on few rows only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.common import QUALITY, Options, Split, chosen, parse, thinned
from experiments.report import Report, draw
from experiments.settings import runs

ALPHAS, LOOSE = (0.25, 0.5, 0.75, 0.9, 1.0), (0.0, 0.1)
FEW_ROWS, QUICK_FEW_ROWS = 4000, 500


def table(split: Split, options: Options, alphas: tuple[float, ...]) -> list[dict[str, Any]]:
    """A row per alpha."""
    columns, leaf = (*QUALITY, "train, CPU s", "predict, ms", "depth"), 20 if options.quick else 100
    return [
        {"alpha": alpha, **chosen(runs("online-tree", split, options, alpha=alpha, max_leaf=leaf), columns)}
        for alpha in alphas
    ]


def main() -> None:
    """Run every alpha on every set, and the loose ones on a part of the first."""
    options = parse(__doc__, sets=("eurlex57k", "yso_finna_en", "Wiki10-31K"))
    report = Report("oplt", "alpha", "OPLT, impact of alpha (best-greedy)", options)
    axes = iter(report.axes(2, len(options.sets)))
    alphas = ALPHAS[::2] if options.quick else ALPHAS
    splits = [options.load(name) for name in options.sets]
    for split in splits:
        rows = table(split, options, alphas)
        report.table(split.title, rows)
        quality, depth = next(axes), next(axes)
        for metric in QUALITY:
            draw(quality, alphas, [row[metric] for row in rows], metric)
        draw(depth, alphas, [row["depth"] for row in rows])
        quality.set(xlabel="alpha", ylabel="percent", title=split.title)
        depth.set(xlabel="alpha", ylabel="depth", title=split.title)
        quality.legend()
    few = thinned(splits[0], QUICK_FEW_ROWS if options.quick else FEW_ROWS)
    few = replace(few, name=f"{few.name}/{few.train.n_rows} rows")
    report.table(few.title, table(few, options, (*LOOSE, *alphas)))
    report.write()


if __name__ == "__main__":
    main()
