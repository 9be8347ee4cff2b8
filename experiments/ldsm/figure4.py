"""Figures 1 (top left) and 4: P@k and nDCG@k against the number of trees, on test rows.

    python -m experiments.ldsm.figure4

The first trees of a forest are judged alone, so that one training per seed gives the whole curve.
"""

from __future__ import annotations

from experiments.common import NDCG, QUALITY, judged, kept, parse
from experiments.report import Report, draw
from experiments.settings import key_of, model
from labelwood.viz.tree_prefixes import prefixes


def main() -> None:
    """Draw the curves of every set."""
    options = parse(__doc__, sets=("delicious/xmc_split0", "bibtex/xmc_split0", "Mediamill", "Wiki10-31K"))
    report = Report("ldsm", "figure4", "LdSM, Figures 1 and 4: quality against trees", options)
    axes = iter(report.axes(2, len(options.sets)))
    for name in options.sets:
        split = options.load(name)

        def one(seed: int, split=split) -> dict[str, float]:
            given = {"n_trees": options.trees(50), "n_jobs": options.threads, "random_state": seed}
            forest = model("ldsm-forest", split.name, **given).fit(split.train.X, split.train.Y.to_scipy())
            return {
                f"{metric} {n_trees}": value
                for n_trees, _, top in prefixes(forest, split.test.X, 5)
                for metric, value in judged(split, top).items()
            }

        key = key_of("ldsm-forest", name, options, n_trees=options.trees(50))
        runs = kept(options, {**key, "what": "first trees"}, one)
        counts = [int(key.split()[1]) for key in runs if key.startswith("P@1 ")]
        rows = [{"trees": n, **{m: runs[f"{m} {n}"] for m in (*QUALITY, *NDCG)}} for n in counts]
        report.table(split.title, rows)
        for axis, names in ((next(axes), QUALITY), (next(axes), NDCG)):
            for metric in names:
                draw(axis, counts, [row[metric] for row in rows], metric)
            axis.set(xlabel="trees", ylabel="percent", title=split.title)
            axis.legend()
    report.write()


if __name__ == "__main__":
    main()
