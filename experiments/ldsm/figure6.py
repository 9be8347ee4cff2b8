"""Figures 1 (bottom) and 6: a single tree against the ensemble.

    python -m experiments.ldsm.figure6

LdSM-1 is a tree of the ensemble, LdSM-1* the best single tree: that of the T_max and the number of epochs which do
best on a held-out fifth of the training rows. FastXML, the other method of the figure, is not part of this library:
its published figures stand beside ours where there are any.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from experiments.common import NDCG, QUALITY, Split, chosen, held_out, measured, parse
from experiments.report import Report
from experiments.settings import model, runs

NODES, EPOCHS = (300, 1000, 3000, 8000, 32000), (5, 10, 20)
FASTXML = {
    "bibtex": (63.42, 39.23, 28.86, 63.42, 59.51, 61.70),
    "delicious": (69.61, 64.12, 59.27, 69.61, 65.47, 61.90),
    "Mediamill": (84.22, 67.33, 53.04, 84.22, 75.41, 72.37),
}


def best_single(split: Split, quick: bool) -> dict[str, int]:
    """T_max and epochs of the best single tree on held-out training rows."""
    part = held_out(split, seed=1)
    tried = product(NODES[:2], EPOCHS[:2]) if quick else product(NODES, EPOCHS)
    found = {
        (nodes, epochs): np.mean(
            [
                measured(
                    model(
                        "ldsm-forest",
                        split.name,
                        n_trees=1,
                        max_nodes=nodes,
                        epochs=epochs,
                        n_jobs=1,
                        random_state=seed,
                    ),
                    part,
                )["P@1"]
                for seed in range(1 if quick else 3)
            ]
        )
        for nodes, epochs in tried
    }
    nodes, epochs = max(found, key=lambda pair: found[pair])
    return {"max_nodes": nodes, "epochs": epochs}


def main() -> None:
    """Draw the bars of every set."""
    options = parse(__doc__, sets=("delicious/xmc_split0", "bibtex/xmc_split0", "Mediamill"))
    report = Report("ldsm", "figure6", "LdSM, Figures 1 and 6: single tree and ensemble", options)
    metrics = (*QUALITY, *NDCG)
    axes = report.axes(1, len(options.sets), width=7)
    for name, axis in zip(options.sets, axes, strict=True):
        split = options.load(name)
        best = best_single(split, options.quick)
        variants = {
            "LdSM-1": {"n_trees": 1},
            f"LdSM-1* {best}": {"n_trees": 1, **best},
            "LdSM": {"n_trees": options.trees(50)},
        }
        rows = []
        for title, given in variants.items():
            rows.append({"": title, **chosen(runs("ldsm-forest", split, options, **given), metrics)})
        published = None if split.generated else FASTXML.get(name.partition("/")[0])
        if published:
            rows.append({"": "FastXML, published", **dict(zip(metrics, published, strict=True))})
        report.table(split.title, rows)
        for place, row in enumerate(rows):
            heights = [np.mean(row[metric]) for metric in metrics]
            spread = [np.std(row[metric]) for metric in metrics]
            axis.bar(np.arange(6) + 0.2 * place, heights, 0.2, yerr=spread, label=row[""], capsize=2)
        axis.set_xticks(np.arange(6) + 0.3, metrics)
        axis.set(ylabel="percent", title=split.title)
        axis.legend(fontsize=7)
    report.write()


if __name__ == "__main__":
    main()
