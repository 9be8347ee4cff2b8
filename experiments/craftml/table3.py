"""Table 3: training time, prediction time and size of a forest, and of a tree of it (the forest's over 50).

    python -m experiments.craftml.table3

Wall seconds with one thread and with two (the paper: one core and five). Run it on an idle machine, with --again if
there are stored times. Compare ratios between rows of one run.
"""

from __future__ import annotations

import time

from experiments.common import AT_HAND, Dataset, Split, kept, model_bytes, parse
from experiments.report import NOT_AT_HAND, Report
from experiments.settings import key_of, model

ABSENT = ("EURLex-4K", "WikiLSHTC-325K", "Delicious-200K", "Amazon-670K", "AmazonCat-13K")
# Training seconds with one core and with five, milliseconds a row, MB.
PUBLISHED = {
    "EURLex-4K": "196 (47.75) s, 5.39 ms, 30 MB",
    "WikiLSHTC-325K": "18508 (5092) s, 7.67 ms, 1060 MB",
    "Delicious-200K": "4754 (1174) s, 8.6 ms, 346 MB",
    "Amazon-670K": "5653 (1487) s, 5.02 ms, 494 MB",
    "AmazonCat-13K": "10606 (2876) s, 5.12 ms, 659 MB",
}


def timed(split: Split, seed: int, n_trees: int) -> dict[str, float]:
    """Wall seconds of both trainings, milliseconds a row alone and in a batch, megabytes."""
    found: dict[str, float] = {}

    def train(part: Dataset, threads: int):
        start = time.perf_counter()
        forest = model("craft-forest", split.name, n_trees=n_trees, n_jobs=threads, random_state=seed)
        forest.fit(part.X, part.Y.to_scipy())
        found[f"train, s, {threads} thread{'s' * (threads > 1)}"] = time.perf_counter() - start
        return forest

    train(split.train, 2)
    forest = train(split.train, 1)
    start = time.perf_counter()
    forest.topk_ids(split.test.X, 5)
    batch = time.perf_counter() - start
    alone = [split.test.X.rows(row, row + 1) for row in range(min(200, split.test.n_rows))]
    start = time.perf_counter()
    for row in alone:
        forest.topk_ids(row, 5)
    single = time.perf_counter() - start
    return {
        **dict(sorted(found.items())), "a tree, s": found["train, s, 1 thread"] / n_trees,
        "batch, ms a row": 1e3 * batch / split.test.n_rows, "one row, ms": 1e3 * single / len(alone),
        "MB": model_bytes(forest) / 1e6, "a tree, MB": model_bytes(forest) / 1e6 / n_trees,
    }  # fmt: skip


def main() -> None:
    """Time every set and write the table."""
    options = parse(__doc__, sets=(*AT_HAND, *ABSENT))
    report = Report("craftml", "table3", "CRAFTML, Table 3: time and size", options)
    n_trees, rows = options.trees(50), []
    for name in options.sets_at_hand():
        split = options.load(name)
        found = kept(
            options,
            {**key_of("craft-forest", name, options, n_trees=n_trees), "what": "wall seconds"},
            lambda seed, s=split: timed(s, seed, n_trees),
        )
        rows.append({"data": split.title, **found})
    report.table(f"Table 3, {n_trees} trees", rows)
    report.table(NOT_AT_HAND, options.published({name: {"the paper": told} for name, told in PUBLISHED.items()}))
    report.write()


if __name__ == "__main__":
    main()
