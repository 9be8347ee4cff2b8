"""The figures of the paper on model size, on any data set: Figs. 3 to 7, five seeds with their spread.

    python experiments/linear_tree_size/figures.py [--data ../shared/data] [--sets eurlex57k] [--out docs/size]

Prints the ratio of a k-means tree to one-vs-rest (Eq. 20) for K = 100 against d_max (Fig. 4) and for K = ceil(L^(1/d))
(Fig. 5), mean and standard deviation over the seeds, and the weighted mean of alpha by depth (Eq. 45). With --out, also
draws them, the theoretical curves (Figs. 3 and 6) and the histograms of alpha (Fig. 7). No classifier is trained.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

import labelwood
from labelwood import size
from labelwood.methods import tree_estimate
from labelwood.progress import Run

DEPTHS, VARIED = (2, 3, 4, 5, 6), (2, 3, 4)
EXAMPLE = (2 * 10**8, 100)  # L and K of Figs. 3 and 6


def plans(train, parameters: list[dict], seed: int) -> list[tree_estimate.Plan]:
    """Trees of the paper's setting with these parameters, and the features their nodes use."""
    run = Run(n_threads=1, seed=seed)
    found = []
    for chosen in parameters:
        model = labelwood.LinearTree.preset("paper", cluster_rounds=20, **chosen)
        rows = model._prepare(train.X)
        found.append(tree_estimate.count(rows, train.Y, model._grow(rows, train.Y, run, seed), run))
    return found


def ratio(plan: tree_estimate.Plan) -> float:
    return size.paper_ratio(plan.weights, plan.tree.n_labels, round(plan.used[0]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--sets", default="eurlex57k,yso_finna_en")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        draw_theory(options.out / "theory.png")
    for name in options.sets.split(","):
        train = labelwood.data.load(options.data / name / "train.txt.xz", label_names=False)
        n_labels = train.Y.n_cols
        fixed = [{"arity": 100, "max_depth": depth} for depth in DEPTHS]
        varied = [{"arity": math.ceil(n_labels ** (1 / depth)), "max_depth": depth} for depth in VARIED]
        found = [plans(train, fixed + varied, seed) for seed in seeds]
        ratios = np.array([[ratio(plan) for plan in row] for row in found])
        last = [row[len(DEPTHS) - 1] for row in found]  # K = 100, d_max = 6
        report(name, ratios, last)
        if options.out:
            draw(options.out / f"{name}.png", name, ratios, last[0])


def report(name: str, ratios: np.ndarray, last: list[tree_estimate.Plan]) -> None:
    mean, spread = ratios.mean(axis=0), ratios.std(axis=0)
    for at, depth in enumerate(DEPTHS):
        print(f"{name}: K = 100, d_max = {depth}: ratio (20) {mean[at]:.4f} +- {spread[at]:.4f}")
    for at, depth in enumerate(VARIED, len(DEPTHS)):
        print(f"{name}: K = L^(1/{depth}), d_max = {depth}: ratio (20) {mean[at]:.4f} +- {spread[at]:.4f}")
    n_features, n_labels = round(last[0].used[0]), last[0].tree.n_labels
    ours = [
        tree_estimate.layout(plan, None, 4).stored.value
        / tree_estimate.dense_bytes(n_labels + 1, 1, n_labels * n_features, n_features)
        for plan in last
    ]
    paper = [size.paper_tree_bytes(plan.weights) for plan in last]
    whole = size.paper_one_vs_rest_bytes(n_labels, n_features)
    print(
        f"{name}: K = 100, d_max = 6: {np.mean(paper) / 1e6:.0f} MB of {whole / 1e6:.0f} MB by the paper's bytes; "
        f"in our layout the ratio is {np.mean(ours):.4f} +- {np.std(ours):.4f}"
    )
    alphas = [[level.alpha for level in size.levels(plan.tree, np.rint(plan.used))] for plan in last]
    for depth in range(1, max(map(len, alphas))):
        here = [row[depth] for row in alphas if len(row) > depth]
        print(
            f"{name}: mean alpha (45) at depth {depth}: {np.mean(here):.3f} +- {np.std(here):.3f}", flush=True
        )


def draw_theory(path: Path) -> None:
    """Figs. 3 and 6: the ratio (15) against the depth."""
    from matplotlib.figure import Figure

    n_labels, arity = EXAMPLE
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    depths = range(2, size.largest_depth(n_labels, arity) + 1)
    for alpha in (0.3, 0.4, 0.5, 0.6):
        ratios = [size.size_ratio(n_labels, arity, depth, alpha) for depth in depths]
        axes.plot(depths, ratios, marker="o", label=f"alpha = {alpha}")
    axes.set(xlabel="depth d", ylabel="ratio (15)", yscale="log", xticks=list(depths))
    axes.legend()
    figure.savefig(path, dpi=120)


def draw(path: Path, name: str, ratios: np.ndarray, plan: tree_estimate.Plan) -> None:
    """Figs. 4 and 5 side by side, and a histogram of alpha for each depth (Fig. 7)."""
    from matplotlib.figure import Figure

    parts = size.inner_levels(plan.tree)[1:]
    figure = Figure(figsize=(3.2 * (2 + len(parts)), 3), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, 2 + len(parts)))
    mean, spread = ratios.mean(axis=0), ratios.std(axis=0)
    n_fixed = len(DEPTHS)
    axes[0].errorbar(DEPTHS, mean[:n_fixed], spread[:n_fixed], marker="o", capsize=3)
    axes[0].set(title=f"{name}, K = 100", xlabel="d_max", ylabel="tree / one-vs-rest (20)")
    axes[1].errorbar(VARIED, mean[n_fixed:], spread[n_fixed:], marker="o", capsize=3)
    axes[1].set(title="K = L^(1/d_max)", xlabel="d_max", xticks=VARIED)
    alphas = size.reduction_ratios(plan.tree, plan.used)
    levels = size.levels(plan.tree, np.rint(plan.used))
    for depth, (axis, part) in enumerate(zip(axes[2:], parts, strict=True), 1):
        axis.hist(alphas[part], bins=20, range=(0, 1))
        axis.set(title=f"depth {depth}: mean {levels[depth].alpha:.3f}", xlabel="alpha (44)")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
