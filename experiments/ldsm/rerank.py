"""What re-ranking for the tail gives and costs: the three forests with and without it, on held-out training rows.

python experiments/ldsm/rerank.py bibtex --trees 10
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import read, validation

from labelwood import CraftForest, GraphForest, LdsmForest
from labelwood.metrics import precision_at_k
from labelwood.progress import Run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--trees", type=int, default=10)
    options = parser.parse_args()
    fit, (X, Y) = validation(*read(options.name, "train"))
    for method in (LdsmForest, CraftForest, GraphForest):
        model = method(n_trees=options.trees, n_jobs=1, rerank=True).fit(*fit)
        for rerank in (False, True):
            model.rerank = rerank
            start = time.process_time()
            top = model._topk(X, 5, Run(n_threads=1))
            milliseconds = 1e3 * (time.process_time() - start) / X.n_rows
            precision = " ".join(f"{100 * precision_at_k(Y, top, k):.2f}" for k in (1, 3, 5))
            found = len(np.unique(top.labels[:, 0])) / Y.n_cols
            print(
                f"{options.name} {method.__name__} rerank={rerank}: P@1,3,5 {precision}; "
                f"{100 * found:.1f} % of labels come first somewhere; {milliseconds:.3f} ms a row",
                flush=True,
            )


if __name__ == "__main__":
    main()
