"""Figures 4, 5 and 7: the size of k-means trees against one-vs-rest, and the reduction of features by depth.

    python -m experiments.linear_tree_size.figures_4_5_7

Five seeds as in the paper. The ratio is that of Eq. 20: K = 100 against d_max (Figure 4) and K = ceil(L^(1/d_max))
(Figure 5). Figure 7 has the histograms of alpha (44) and its weighted mean (45) for K = 100, d_max = 6. Trees are
grown and their features counted; no classifier is trained.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.common import AT_HAND, Options, Split, parse
from experiments.report import Report, draw
from labelwood import LinearTree
from labelwood.methods.label_tree.training_rows import TrainingRows
from labelwood.resources import label_tree, theory
from labelwood.run_context import RunContext

DEPTHS, VARIED = (2, 3, 4, 5, 6), (2, 3, 4)
ABSENT = ("AmazonCat-13K", "Wiki10-31K", "Wiki-500K", "Amazon-670K", "Amazon-3M")


def plans(split: Split, seed: int) -> list[label_tree.Plan]:
    """Trees of the paper's setting: K = 100 for every depth, then K by depth."""
    rows, run = split.train, RunContext(n_threads=1, seed=seed)
    shapes = [(100, depth) for depth in DEPTHS]
    shapes += [(math.ceil(rows.Y.n_cols ** (1 / depth)), depth) for depth in VARIED]
    found = []
    for arity, depth in shapes:
        model = LinearTree.preset("paper", cluster_rounds=20, arity=max(2, arity), max_depth=depth)
        prepared = TrainingRows.of(rows.X, run, normalize=model.normalize)
        found.append(prepared.count(rows.Y, model._grower(prepared, rows.Y, run)(seed), run))
    return found


def compared(plan: label_tree.Plan) -> dict[str, Any]:
    """The tree against one-vs-rest: Eqs. 17 to 20, and the same by the bytes of our layout."""
    return theory.against_one_vs_rest(plan.tree, plan.used)


def ratios(options: Options, found: dict[str, list[list[label_tree.Plan]]]) -> None:
    """Figures 4 and 5."""
    parts = ((4, "K = 100", slice(0, len(DEPTHS)), DEPTHS), (5, "K = L^(1/d_max)", slice(len(DEPTHS), None), VARIED))
    for number, setting, part, depths in parts:
        title = f"Linear tree size, Figure {number}: tree / one-vs-rest, {setting}"
        report = Report("linear_tree_size", f"figure{number}", title, options)
        rows = []
        for (name, by_seed), axis in zip(found.items(), report.grid(len(found)), strict=True):
            values = np.array([[compared(plan)["paper_ratio"] for plan in seed[part]] for seed in by_seed]).T
            rows.append({"data": name, **{f"d_max = {d}": row.tolist() for d, row in zip(depths, values, strict=True)}})
            draw(axis, depths, values)
            axis.set(xlabel="d_max", ylabel="ratio (20)", title=name, xticks=depths)
            axis.title.set_fontsize(7)
            if number == 4:
                last = [seed[len(DEPTHS) - 1] for seed in by_seed]
                whole = compared(last[0])["paper_one_vs_rest_bytes"] / 1e6
                rows[-1] |= {
                    "MB, tree": [compared(plan)["paper_tree_bytes"] / 1e6 for plan in last],
                    "MB, one-vs-rest": whole,
                    "ratio in our layout": [compared(plan)["ratio"] for plan in last],
                }
        report.table(f"Ratio (20), {setting}", rows)
        report.write()


def reductions(options: Options, found: dict[str, list[list[label_tree.Plan]]]) -> None:
    """Figure 7."""
    report = Report("linear_tree_size", "figure7", "Linear tree size, Figure 7: alpha by depth", options)
    first = {name: by_seed[0][len(DEPTHS) - 1] for name, by_seed in found.items()}
    deepest = max(len(theory.inner_levels(plan.tree)) for plan in first.values())
    axes, rows = report.axes(max(1, deepest - 1), len(found), width=3.2, height=2.6), []
    for place, (name, plan) in enumerate(first.items()):
        alphas = theory.reduction_ratios(plan.tree, plan.used)
        for depth, part in enumerate(theory.inner_levels(plan.tree)[1:], 1):
            axis = axes[place * (deepest - 1) + depth - 1]
            axis.hist(alphas[part], bins=20, range=(0, 1))
            axis.set_title(f"{name}, depth {depth}", fontsize=6)
        means = [
            [level.alpha for level in theory.levels(seed[len(DEPTHS) - 1].tree, seed[len(DEPTHS) - 1].used)]
            for seed in found[name]
        ]
        rows.append(
            {"data": name, **{f"depth {d}": [m[d] for m in means if d < len(m)] or None for d in range(1, deepest)}}
        )
    report.table("Weighted mean of alpha (45), K = 100, d_max = 6", rows)
    report.write()


def main() -> None:
    """Grow all trees once, then write the three figures."""
    options = parse(__doc__, sets=(*AT_HAND, *ABSENT), seeds=5)
    found = {}
    for name in options.sets:
        split = options.load(name)
        found[split.title] = [plans(split, seed) for seed in options.seeds]
    ratios(options, found)
    reductions(options, found)


if __name__ == "__main__":
    main()
