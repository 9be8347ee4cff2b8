"""Impact of alpha (the paper's Appendix F): balance of the tree against fit, by quality, time and depth.

python -m experiments.oplt.alpha
"""

from __future__ import annotations

from experiments.common import QUALITY, chosen, parse
from experiments.report import Report, draw
from experiments.settings import runs

ALPHAS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)


def main() -> None:
    """Run every alpha on every set."""
    options = parse(__doc__, sets=("eurlex57k", "yso_finna_en", "Wiki10-31K"))
    report = Report("oplt", "alpha", "OPLT, impact of alpha (best-greedy)", options)
    axes = iter(report.axes(2, len(options.sets)))
    alphas = ALPHAS[1::2] if options.quick else ALPHAS
    for name in options.sets:
        split, rows = options.load(name), []
        for alpha in alphas:
            found = runs("online-tree", split, options, alpha=alpha, max_leaf=20 if options.quick else 100)
            rows.append({"alpha": alpha, **chosen(found, (*QUALITY, "train, CPU s", "predict, ms", "depth"))})
        report.table(split.title, rows)
        quality, depth = next(axes), next(axes)
        for metric in QUALITY:
            draw(quality, alphas, [row[metric] for row in rows], metric)
        draw(depth, alphas, [row["depth"] for row in rows])
        quality.set(xlabel="alpha", ylabel="percent", title=split.title)
        depth.set(xlabel="alpha", ylabel="depth", title=split.title)
        quality.legend()
    report.write()


if __name__ == "__main__":
    main()
