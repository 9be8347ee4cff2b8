"""What re-ranking for the tail gives and costs: the three forests with and without it, on held-out training rows.

python -m experiments.ldsm.rerank --sets bibtex/xmc_split0 --trees 10
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.common import PSP, QUALITY, held_out, judged, kept, parse
from experiments.report import Report
from experiments.settings import key_with
from labelwood import METHODS

FORESTS = ("ldsm-forest", "craft-forest", "graph-forest")


def main() -> None:
    """Judge every forest both ways."""

    def extra(parser: Any) -> None:
        parser.add_argument("--trees", type=int, default=10)

    options = parse(__doc__, sets=("bibtex/xmc_split0",), extra=extra)
    report = Report("ldsm", "rerank", "Re-ranking for the tail, held-out rows", options)
    for name in options.sets:
        split, rows = options.load(name), []
        given = {"n_trees": options.trees(options.extra.trees), "rerank": True}
        for method in FORESTS:

            def one(seed: int, method=method, split=split, given=given) -> dict[str, float]:
                part, found = held_out(split, seed), {}
                model = METHODS[method](**given, n_jobs=options.threads, random_state=seed)
                model.fit(part.train.X, part.train.Y.to_scipy())
                for kind in ("trees", "re-ranked"):
                    model.rerank = kind == "re-ranked"
                    start = time.process_time()
                    top = model.topk_ids(part.test.X, 5)
                    found[f"{kind} ms a row"] = 1e3 * (time.process_time() - start) / part.test.n_rows
                    quality = judged(part, top)
                    found |= {f"{kind} {metric}": quality[metric] for metric in (*QUALITY, *PSP)}
                    first = len(np.unique(top.labels[:, 0])) / part.test.Y.n_cols
                    found[f"{kind} labels that come first, %"] = 100 * first
                return found

            key = key_with(method, name, options, **given)
            runs = kept(options, {**key, "what": "with and without re-ranking"}, one)
            for kind in ("trees", "re-ranked"):
                own = {key.removeprefix(f"{kind} "): v for key, v in runs.items() if key.startswith(f"{kind} ")}
                rows.append({"": f"{method}, {kind}", **own})
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
