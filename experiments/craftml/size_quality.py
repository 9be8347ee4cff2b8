"""Size against quality of a CraftForest: entries kept of a centroid, labels kept in a leaf, number format.

    python -m experiments.craftml.size_quality --sets eurlex57k --centroids 0.5:3 0.95:10

Every cut of the centroids, ``centroid_share:centroid_size``, is trained anew (training routes by the cut centroids);
leaves and number formats are cut from the trained model.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from experiments.common import QUALITY, Split, chosen, judged, kept, parse
from experiments.report import Report
from experiments.settings import key_with
from labelwood import METHODS

CUTS = ({}, {"dtype": "float16"}, {"leaf_size": 20}, {"leaf_size": 10}, {"leaf_size": 5})


def parsed(text: str) -> tuple[float, int]:
    """A cut of the centroids."""
    share, size = text.split(":")
    return float(share), int(size)


def one(split: Split, given: dict[str, Any], seed: int) -> dict[str, float]:
    """Size, time and quality after each further cut of one forest."""
    model = METHODS["craft-forest"](**given, n_jobs=1, random_state=seed)
    model.fit(split.train.X, split.train.Y.to_scipy())
    found = {}
    for place, further in enumerate(CUTS):
        if further:
            model.shrink(**further)
        start = time.process_time()
        top = model.topk_ids(split.test.X, 5)
        found[f"{place} ms a row"] = 1e3 * (time.process_time() - start) / split.test.n_rows
        found[f"{place} MB"] = model.forest_.nbytes / 1e6
        found |= {f"{place} {metric}": value for metric, value in judged(split, top).items()}
    return found


def rows_of(split: Split, cut: tuple[float, int], runs: dict[str, list[float]]) -> Iterator[dict[str, Any]]:
    """A row of the table per further cut."""
    said = {"centroid_share": cut[0], "centroid_size": cut[1], "leaf_size": "all", "dtype": "float32"}
    for place, further in enumerate(CUTS):
        said |= further
        own = {key.partition(" ")[2]: values for key, values in runs.items() if key.startswith(f"{place} ")}
        yield {**said, **chosen(own, ("MB", "ms a row", *QUALITY))}


def main() -> None:
    """The curve of every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--centroids", type=parsed, nargs="+", default=[(0.5, 3), (0.7, 5), (0.9, 10), (0.95, 10)])
        parser.add_argument("--trees", type=int, default=50)

    options = parse(__doc__, sets=("eurlex57k",), extra=extra)
    report = Report("craftml", "size_quality", "CRAFTML: size against quality", options)
    for name in options.sets:
        split, rows = options.load(name), []
        for cut in options.extra.centroids:
            given = {
                "n_trees": options.trees(options.extra.trees),
                "centroid_share": cut[0],
                "centroid_size": cut[1],
                "weight_dtype": "float32",
            }
            key = {**key_with("craft-forest", name, options, **given), "what": "further cuts"}
            runs = kept(options, key, lambda seed, s=split, g=given: one(s, g, seed))
            rows += rows_of(split, cut, runs)
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
