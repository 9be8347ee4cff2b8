"""Progressive validation of LivingTree: a stream, against OnlineTree alone and a LinearTree of all that came before.

    python -m experiments.living.stream cve
    python -m experiments.living.stream yso_finna_en --order 0 [--rows 40000] [--set refit_growth=0.1]

Each row of the last tenth is predicted before it is learned. Prints P@1, P@3 and P@5 over the last tenth, and the
recall at 5 of labels that were first seen within the last 1,000 rows. ``ceiling`` is the P@k of a model that knows all
labels seen before a row. LinearTree is trained once, on the rows before
the last tenth. cve is in the order of time, its texts are hashed; yso_finna_en is in random order ``--order``.
"""

from __future__ import annotations

import argparse
import ast
import json
import lzma
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import KS, ROOT
from labelwood import HashingEncoder, LinearTree, LivingTree, OnlineTree
from labelwood.data import load
from labelwood.label_names import LabelNames
from labelwood.methods.online.learner import StreamLearner
from labelwood.sparse import CSR, I32, from_lists

NEW_ROWS = 1000
HASHED = 2**18
AT_ONCE = 1024
DATA = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data"))


def main() -> None:
    """Run the stream and print one line of JSON for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=["cve", "yso_finna_en"])
    parser.add_argument("--order", type=int, default=0, help="seed of the random order (yso_finna_en)")
    parser.add_argument("--rows", type=int, help="use the first rows only")
    parser.add_argument("--set", action="append", default=[], help="parameter=value of LivingTree")
    parser.add_argument("--models", default="living,online,linear")
    options = parser.parse_args()
    X, Y = read_cve() if options.data == "cve" else read_yso(options.order)
    n_rows = min(options.rows or X.n_rows, X.n_rows)
    X, Y = X.rows(0, n_rows), Y.rows(0, n_rows)
    given = {name: ast.literal_eval(value) for name, value in (one.split("=", 1) for one in options.set)}
    first = n_rows - n_rows // 10
    for name in options.models.split(","):
        clock = time.process_time()
        facts: dict[str, Any] = {}
        if name == "linear":
            model = LinearTree(n_jobs=1).fit(X.rows(0, first), Y.rows(0, first))
            found = model.topk_ids(X.rows(first, n_rows), max(KS)).labels
        else:
            learner = LivingTree(n_jobs=1, **given) if name == "living" else OnlineTree(n_jobs=1)
            learner = learner.begun(LabelNames.columns(0))
            learner.partial_fit(X.rows(0, first), Y.rows(0, first))
            found = stream(learner, X.rows(first, n_rows), Y.rows(first, n_rows))
            if name == "living":
                facts = {key: learner.describe()[key] for key in ("mix", "refits", "batch_rows")}
        seconds = round(time.process_time() - clock, 1)
        shown = {"data": options.data, "order": options.order, "rows": n_rows, "model": name, "cpu_seconds": seconds}
        print(json.dumps({**shown, **judged(found, Y, first), **facts}), flush=True)


def stream(model: StreamLearner, X: CSR, Y: CSR) -> I32:
    """The best labels of every row before it was learned."""
    bounds = [*range(0, X.n_rows, AT_ONCE), X.n_rows]
    return np.concatenate(
        [model.test_then_learn(X.rows(*ends), Y.rows(*ends), k=max(KS))[0] for ends in pairwise(bounds)]
    )


def judged(found: I32, Y: CSR, first: int) -> dict[str, Any]:
    """P@k of rows from ``first`` on that have labels, and the recall of labels that are new.

    ``ceiling`` is P@k of the true labels that were seen before.
    """
    seen: dict[int, int] = {}
    hits = np.zeros((len(found), max(KS)))
    labelled, new, recalled, ceiling = 0, 0, 0, np.zeros(max(KS))
    for row in range(Y.n_rows):
        own = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
        if row >= first and own:
            listed = found[row - first].tolist()
            hits[labelled] = np.isin(listed, own)
            labelled += 1
            ceiling[: len([label for label in own if label in seen])] += 1
            fresh = [label for label in own if label in seen and row - seen[label] <= NEW_ROWS]
            new, recalled = new + len(fresh), recalled + len(set(fresh) & set(listed))
        for label in own:
            seen.setdefault(label, row)
    result = {f"P@{k}": round(100 * float(hits[:labelled, :k].sum() / (k * labelled)), 2) for k in KS}
    best = [round(100 * float(ceiling[:k].sum() / (k * labelled)), 2) for k in KS]
    return {**result, "ceiling": best, "new_labels": new, "new_recall@5": round(100 * recalled / max(new, 1), 2)}


def read_yso(order: int) -> tuple[CSR, CSR]:
    """The training rows in a random order."""
    train = load(DATA / "yso_finna_en" / "train.txt.xz")
    rows = np.random.default_rng(order).permutation(train.n_rows)
    return train.X.take(rows), train.Y.take(rows)


def read_cve() -> tuple[CSR, CSR]:
    """All rows in the order of time, hashed."""
    texts: list[str] = []
    labels: list[list[int]] = []
    ids: dict[str, int] = {}
    for name in ("train.jsonl.xz", "test.jsonl.xz"):
        with lzma.open(DATA / "cve" / name, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                texts.append(record["text"])
                labels.append([ids.setdefault(label, len(ids)) for label in record["labels"]])
    X = HashingEncoder(n_features=HASHED, n_jobs=1).fit_encode(texts)
    return X, from_lists(labels, len(ids))


if __name__ == "__main__":
    main()
