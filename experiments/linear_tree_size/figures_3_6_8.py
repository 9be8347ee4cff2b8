"""Figures 3, 6 and 8: the theory. No data are needed.

    python -m experiments.linear_tree_size.figures_3_6_8

Figures 3 and 6 are the ratio (15) of a balanced tree to one-vs-rest against its depth, up to D - 1 and up to D.
Figure 8 is the paper's tree of ten labels for which the mean of alpha is weighted by children.
"""

from __future__ import annotations

import numpy as np

from experiments.common import Options, parse
from experiments.report import Report
from labelwood.packed.tree_shape import LabelTree
from labelwood.resources import theory

N_LABELS, ARITY = 2 * 10**8, 100
ALPHAS = (0.3, 0.4, 0.5, 0.6)


def ratios(options: Options) -> None:
    """Figures 3 and 6."""
    deepest = theory.largest_depth(N_LABELS, ARITY)
    for number, last in ((3, deepest - 1), (6, deepest)):
        title = f"Linear tree size, Figure {number}: ratio (15) against depth, L = 2e8, K = 100"
        report = Report("linear_tree_size", f"figure{number}", title, options)
        (axis,) = report.axes(1, width=5)
        depths = list(range(2, last + 1))
        lines = {alpha: [theory.size_ratio(N_LABELS, ARITY, depth, alpha) for depth in depths] for alpha in ALPHAS}
        for alpha, line in lines.items():
            axis.plot(depths, line, marker="o", label=f"alpha = {alpha}")
        axis.set(xlabel="depth d", ylabel="tree / one-vs-rest (15)", yscale="log", xticks=depths)
        axis.legend()
        report.table(f"D = {deepest}", [
            {"alpha": alpha, **{f"d = {depth}": ratio for depth, ratio in zip(depths, line, strict=True)}}
            for alpha, line in lines.items()
        ])  # fmt: skip
        report.write()


def weighted(options: Options) -> None:
    """Figure 8: nodes B, C, D with 2, 2 and 6 labels use 10, 30 and 80 of the root's 100 features."""
    children = [3, 2, 2, 6, *[0] * 10]
    tree = LabelTree(np.cumsum([1, *children]).astype(np.int32), np.array([-1] * 4 + list(range(10)), np.int32)).check(
        n_labels=10
    )
    used = np.array([100, 10, 30, 80])
    report = Report(
        "linear_tree_size", "figure8", "Linear tree size, Figure 8: the weighted mean of alpha (45)", options
    )
    alphas = theory.reduction_ratios(tree, used)[1:4]
    mean = theory.levels(tree, used)[1].alpha
    report.table("A tree of ten labels", [
        {"node": node, "children": count, "features": int(features), "alpha (44)": float(alpha)}
        for node, count, features, alpha in zip("BCD", (2, 2, 6), used[1:], alphas, strict=True)
    ])  # fmt: skip
    by_hand = (0.1 * 2 + 0.3 * 2 + 0.8 * 6) / 10
    report.table(
        "Mean at depth 1", [{"weighted (45)": mean, "by the paper's sum": by_hand, "plain": float(alphas.mean())}]
    )
    report.write()


def main() -> None:
    """All three."""
    options = parse(__doc__, sets=(), seeds=1)
    ratios(options)
    weighted(options)


if __name__ == "__main__":
    main()
