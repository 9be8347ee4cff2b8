"""Every pair of public methods on one growing model, from two threads; docs/develop/promises.md has the table.

``make test-tsan`` runs these tests under ThreadSanitizer.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import labelwood
from labelwood import LabelwoodError, LivingTree, OnlineForest, OnlineTree

LABELS = [f"label {number}" for number in range(12)]
SECONDS = 0.08  # of each pair
WAIT = 60.0  # a thread that takes longer is stuck


class Shared:
    """A model that several threads use, the rows that were given to it, and a folder to save to."""

    def __init__(self, kind, folder) -> None:
        self.n_trees = 2 if kind is OnlineForest else 1
        settings = {
            OnlineTree: {"max_leaf": 4},
            OnlineForest: {"n_trees": 2, "tree": {"max_leaf": 4}},
            LivingTree: {"online": {"max_leaf": 4}, "refit_rows": 100},
        }[kind]
        self.model = kind(n_jobs=1, **settings)
        self.folder, self.taught, self.fitted, self.numbers = folder, [], False, itertools.count()
        self.renamed, self.in_turn = "never taught", threading.Lock()
        self.model.partial_fit([{0: 1.0}], [[self.renamed]])
        self.taught.append(1)
        self.partial_fit(48)

    def batch(self, n_rows=6, *, new=True):
        number = next(self.numbers)
        X = [{(7 * number + row) % 90: 1.0, 90 + row % 5: 0.5} for row in range(n_rows)]
        Y = [[LABELS[(number + row) % len(LABELS)]] for row in range(n_rows)]
        if new:
            Y[-1] = [f"new {number}"]
        return X, Y

    def partial_fit(self, n_rows=6):
        self.model.partial_fit(*self.batch(n_rows))
        self.taught.append(n_rows)

    def progressive(self):
        X, Y = self.batch()
        found = self.model.progressive(X, Y, k=2)
        assert found.hits.shape == (6, 2)
        self.taught.append(len(Y))

    def refit(self):
        with contextlib.suppress(LabelwoodError):  # another thread trains
            self.model.refit()

    def fit(self):
        X = np.eye(len(LABELS) + 1, 100, dtype=np.float32)
        with self.in_turn:
            self.fitted = True
            self.model.fit(X, [[name] for name in (self.renamed, *LABELS)])

    def calibrate(self):
        X, Y = self.batch(new=False)
        self.model.calibrate(X, Y)

    def choose_thresholds(self):
        X, Y = self.batch(new=False)
        self.model.choose_thresholds(X, Y)

    def rename(self):
        name = f"renamed {next(self.numbers)}"
        with self.in_turn:  # which name is the old one
            self.model.labels.rename(self.renamed, name)
            self.renamed = name

    def retire(self):
        self.model.labels.retire("label 4")
        self.model.labels.restore("label 4")

    def merge(self):
        self.model.labels.merge("label 5", "label 6")
        self.model.labels.restore("label 5")

    def list_labels(self):
        entries = self.model.labels.list()
        assert [entry.id for entry in entries] == list(range(len(entries)))
        assert len({entry.name for entry in entries}) == len(entries)

    def predict(self):
        assert self.model.predict(self.batch()[0], k=3).shape[0] == 6

    def predict_topk(self):
        names, scores = self.model.predict_topk(self.batch()[0], 3)
        assert np.isfinite(scores).all()
        assert all(len(set(row)) == 3 for row in names.tolist())

    def predict_proba(self):
        assert np.isfinite(self.model.predict_proba(self.batch()[0]).data).all()

    def score(self):
        assert 0 <= self.model.score(*self.batch(new=False)) <= 1

    def explain(self):
        (found,) = self.model.explain(self.batch(1)[0], 2, missed=["label 1"])
        assert len(found.suggestions) == 2
        for suggestion in found.suggestions:
            total = sum(path.score for path in suggestion.paths if path.listed)
            assert suggestion.score == pytest.approx(total / self.n_trees, rel=1e-3, abs=1e-6)

    def top_features(self):
        assert all(weight > 0 for _, weight in self.model.top_features("label 1"))

    def facts(self):
        names = self.model.classes_.tolist()
        assert len(names) == len(set(names))
        assert self.model.describe()["nodes"] > 0
        assert len(self.model.label_entries()) > 0

    def freeze(self):
        frozen = self.model.freeze()
        assert not frozen.can_learn
        self.check(frozen)

    def save(self):
        path = self.folder / f"model {threading.get_ident()}"
        self.model.save(path)
        self.check(labelwood.load(path))

    def save_for_prediction(self):
        path = self.folder / f"frozen {threading.get_ident()}"
        self.model.save(path, inference_only=True)
        self.check(labelwood.load(path))

    def deepcopy(self):
        self.check(copy.deepcopy(self.model))

    def pickle(self):
        self.check(pickle.loads(pickle.dumps(self.model)))

    def check(self, model):
        """A copy is a state that the model had between two calls: tree, names and counts agree."""
        counts, n_rows = model.label_counts_, model.trained_["rows"]
        assert len(counts) == model.n_labels_ == len(set(model.classes_.tolist()))
        assert counts.sum() == n_rows == model.n_seen_
        assert model.trained_["label_entries"] == n_rows
        support = model.label_records()["support"]
        same = [name not in ("label 5", "label 6") for name in model.classes_.tolist()[: len(support)]]
        np.testing.assert_array_equal(support[same], counts[: len(support)][same])
        assert np.isfinite(model.predict_topk(self.batch()[0], 3)[1]).all()


CHANGES = ["partial_fit", "progressive", "fit", "calibrate", "choose_thresholds", "rename", "retire", "merge"]
READS = [
    "predict", "predict_topk", "predict_proba", "score", "explain", "top_features", "facts", "list_labels", "freeze",
    "save", "save_for_prediction", "deepcopy", "pickle",
]  # fmt: skip
PAIRS = [*itertools.combinations_with_replacement(CHANGES, 2), *itertools.product(CHANGES, READS)]


def run_together(actions: list[Callable[[], None]], seconds: float) -> None:
    """Call each action again and again on a thread of its own; raise the first error."""
    failed: list[BaseException] = []
    ready, end = threading.Barrier(len(actions)), time.monotonic() + seconds

    def repeat(action):
        try:
            ready.wait(WAIT)
            action()
            while time.monotonic() < end and not failed:
                action()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=repeat, args=(action,), daemon=True) for action in actions]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
    finally:
        sys.setswitchinterval(interval)
    if failed:
        raise failed[0]
    assert not any(thread.is_alive() for thread in threads), "two threads wait for each other"


@pytest.mark.parametrize("kind", [OnlineTree, OnlineForest])
@pytest.mark.parametrize(("one", "other"), [pytest.param(*pair, id="-".join(pair)) for pair in PAIRS])
def test_pair(kind, one, other, tmp_path):
    shared = Shared(kind, tmp_path)
    run_together([getattr(shared, one), getattr(shared, other)], SECONDS)
    shared.check(shared.model)
    if not shared.fitted:
        assert shared.model.n_seen_ == sum(shared.taught)


LIVING = [
    *itertools.combinations_with_replacement(["partial_fit", "refit", "merge"], 2),
    *itertools.product(
        ["partial_fit", "refit"], ["predict_topk", "list_labels", "freeze", "save", "deepcopy", "pickle"]
    ),
]


@pytest.mark.parametrize(("one", "other"), [pytest.param(*pair, id="-".join(pair)) for pair in LIVING])
def test_pair_of_a_living_tree(one, other, tmp_path):
    shared = Shared(LivingTree, tmp_path)
    run_together([getattr(shared, one), getattr(shared, other)], SECONDS)
    shared.check(shared.model)
    assert shared.model.n_seen_ == sum(shared.taught)
