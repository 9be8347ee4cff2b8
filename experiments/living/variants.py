"""What brings OnlineTree nearer to a batch: variants of learning online, over the first rows of a stream.

    python -m experiments.living.variants cve --rows 40000
    python -m experiments.living.variants yso_finna_en --order 0 --rows 20000 [--models online,replay]

The last tenth of the rows given, or ``--judged``, is judged as in ``experiments.living.stream``. Give fewer rows than
the whole stream: its own last tenth is not looked at. The variants:

- ``online``: OnlineTree; ``slow``, ``fast``: half and twice its learning rate
- ``replay``: for each new row, one row drawn at random from those before is learned again
- ``warm``: the tree starts from that of a LinearTree of the first fifth of the rows, and learns these rows again
- ``forest``: the average of three online trees
- ``nearest``: the votes of the ten nearest of all rows before, and nothing else
- ``averaged``: every node predicts with the average of its weights over time; ``hinge``, ``hinge_slow``: the squared
  hinge instead of the logistic loss, at the same learning rate and at a third of it. Both, and ``twin``, which is
  ``online``, are run in plain Python: give few rows, and judge a larger share of them (``--judged 0.5``)
- ``living``, ``alone``: LivingTree, with and without the votes of the nearest rows
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.common import KS
from experiments.living.stream import judged, read_cve, read_yso, stream
from experiments.living.twins import Averaged, Hinge, answers_of
from labelwood import LinearTree, LivingTree, OnlineForest, OnlineTree
from labelwood.label_names import LabelNames
from labelwood.methods.online.learner import StreamLearner
from labelwood.methods.online.row_store import NearestRows
from labelwood.sparse import CSR, I32
from tests.reference.online_tree import Classifier

Variant = Callable[[CSR, CSR, int], I32]


def learned(model: StreamLearner) -> Variant:
    """The progressive answers of a model over the last rows."""

    def run(X: CSR, Y: CSR, first: int) -> I32:
        learner = model.begun(LabelNames.columns(0))
        learner.partial_fit(X.rows(0, first), Y.rows(0, first))
        return stream(learner, X.rows(first, X.n_rows), Y.rows(first, X.n_rows))

    return run


def replayed(X: CSR, Y: CSR, first: int) -> I32:
    """Each new row, then one of the rows before."""
    chooser, model = np.random.default_rng(0), OnlineTree(n_jobs=1).begun(LabelNames.columns(0))
    found = []
    for row in range(X.n_rows):
        known, targets = X.rows(row, row + 1), Y.rows(row, row + 1)
        found.append(model.test_then_learn(known, targets, k=max(KS))[0] if row >= first else None)
        again = int(chooser.integers(0, row + 1))
        if row < first:
            model.partial_fit(known, targets)
        model.partial_fit(X.rows(again, again + 1), Y.rows(again, again + 1))
    return np.concatenate([one for one in found if one is not None])


def warmed(X: CSR, Y: CSR, first: int) -> I32:
    """A tree that begins as the tree of a batch."""
    head = first // 5
    labels = np.unique(Y.rows(0, head).indices)
    batch = LinearTree(n_jobs=1, n_trees=1).fit(
        X.rows(0, head), Y.rows(0, head).to_scipy()[:, labels], label_names=labels.tolist()
    )
    names = list(range(Y.n_cols))
    model = OnlineTree(n_jobs=1).warm_start_from(batch, X.rows(0, head), Y.rows(0, head), label_names=names)
    model.partial_fit(X.rows(head, first), Y.rows(head, first), label_names=names)
    ids, _ = model.test_then_learn(X.rows(first, X.n_rows), Y.rows(first, X.n_rows), k=max(KS), label_names=names)
    return np.where(ids >= 0, model.classes_.astype(np.int32)[ids], -1)


def voted(X: CSR, Y: CSR, first: int) -> I32:
    """The nearest rows alone."""
    index = NearestRows(10, 0)
    index.add(X.rows(0, first), Y.rows(0, first))
    return index.search_then_add(X.rows(first, X.n_rows), Y.rows(first, X.n_rows), max(KS)).labels


VARIANTS: dict[str, Variant] = {
    "online": learned(OnlineTree(n_jobs=1)),
    "slow": learned(OnlineTree(n_jobs=1, learning_rate=0.5)),
    "fast": learned(OnlineTree(n_jobs=1, learning_rate=2.0)),
    "replay": replayed,
    "warm": warmed,
    "forest": learned(OnlineForest(n_trees=3, n_jobs=1)),
    "nearest": voted,
    "twin": partial(answers_of, Classifier),
    "averaged": partial(answers_of, Averaged),
    "hinge": partial(answers_of, Hinge),
    "hinge_slow": partial(answers_of, Hinge, rate=1 / 3),
    "living": learned(LivingTree(n_jobs=1)),
    "alone": learned(LivingTree(n_jobs=1, neighbors=0)),
}


def main() -> None:
    """Run the variants and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=["cve", "yso_finna_en"])
    parser.add_argument("--order", type=int, default=0, help="seed of the random order (yso_finna_en)")
    parser.add_argument("--rows", type=int, default=40_000, help="use the first rows only")
    parser.add_argument("--judged", type=float, default=0.1, help="share of the rows, the last ones, that are judged")
    parser.add_argument("--models", default=",".join(VARIANTS))
    options = parser.parse_args()
    X, Y = read_cve() if options.data == "cve" else read_yso(options.order)
    n_rows = min(options.rows, X.n_rows)
    X, Y = X.rows(0, n_rows), Y.rows(0, n_rows)
    first = n_rows - int(options.judged * n_rows)
    for name in options.models.split(","):
        clock = time.process_time()
        found = VARIANTS[name](X, Y, first)
        seconds = round(time.process_time() - clock, 1)
        shown = {"data": options.data, "order": options.order, "rows": n_rows, "model": name, "cpu_seconds": seconds}
        print(json.dumps({**shown, **judged(found, Y, first)}), flush=True)


if __name__ == "__main__":
    main()
