import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate

from labelwood import metrics
from labelwood.errors import LabelwoodError
from labelwood.metrics import scorer
from labelwood.sparse import CSR, TopK, from_lists, from_scipy


class MostPopular(BaseEstimator):
    """Answers every row with the most frequent training labels, or with the rarest when ``turned`` round."""

    def __init__(self, turned=False):
        self.turned = turned

    def fit(self, X, Y):
        if hasattr(Y, "shape"):
            self.classes_ = np.arange(Y.shape[1])
        else:
            self.classes_ = np.array(sorted({name for row in Y for name in row}))
        self.counts_ = metrics.label_counts(self.encode_labels(Y))
        return self

    def encode_labels(self, Y) -> CSR:
        if hasattr(Y, "shape"):
            return from_scipy(sp.csr_array(Y))
        ids = {name: i for i, name in enumerate(self.classes_)}
        rows = [[ids.setdefault(name, len(ids)) for name in row] for row in Y]
        return from_lists(rows, len(ids))

    def topk_ids(self, X, k) -> TopK:
        scores = -self.counts_ if self.turned else self.counts_
        order = np.argsort(-scores, kind="stable")[:k].astype(np.int32)
        n_rows = X.shape[0]
        return TopK(np.tile(order, (n_rows, 1)), np.tile(scores[order].astype(np.float32), (n_rows, 1)))

    def predict_topk(self, X, k=5):
        top = self.topk_ids(X, k)
        return self.classes_[top.labels], top.scores


def popular_data():
    rng = np.random.default_rng(0)
    dense = rng.random((60, 8)) < 0.9 / np.arange(1, 9)
    return sp.csr_array(np.ones((60, 2))), sp.csr_array(dense.astype(np.float32))


@pytest.mark.parametrize("name", ["P@1", "P@5", "R@3", "nDCG@5", "coverage@2", "macroF1@3"])
def test_a_scorer_is_the_metric_of_the_top_k(name):
    X, Y = popular_data()
    model = MostPopular().fit(X, Y)
    k = int(name.split("@")[1])
    assert scorer(name)(model, X, Y) == metrics.evaluate(from_scipy(Y), model.topk_ids(X, k), (k,))[name]


@pytest.mark.parametrize("name", ["PSP@3", "PSnDCG@1"])
def test_propensity_scored_scorers(name):
    X, Y = popular_data()
    model = MostPopular().fit(X, Y)
    k = int(name.split("@")[1])
    weights = metrics.inverse_propensities(model.counts_, 60)
    expected = metrics.evaluate(from_scipy(Y), model.topk_ids(X, k), (k,), weights)[name]
    assert scorer(name, inv_propensity=weights)(model, X, Y) == expected


def test_cross_val_score_on_an_indicator_matrix_and_on_lists_of_names():
    X, Y = popular_data()
    names = [[f"label {i}" for i in np.flatnonzero(row)] for row in Y.toarray()]
    arguments = {"scoring": scorer("P@1"), "cv": KFold(3), "error_score": "raise"}
    on_matrix = cross_val_score(MostPopular(), X, Y.toarray(), **arguments)
    on_names = cross_val_score(MostPopular(), X, names, **arguments)
    assert on_matrix == pytest.approx(on_names)
    assert (on_matrix > 0.5).all()


def test_labels_never_trained_on_still_count_in_recall():
    X = np.zeros((2, 1))
    model = MostPopular().fit(X, [["a"], ["a", "b"]])
    found = scorer("R@2")(model, X, [["a", "new"], ["b", "newer", "newest"]])
    assert found == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_grid_search_finds_the_better_setting():
    X, Y = popular_data()
    grid = {"turned": [True, False]}
    search = GridSearchCV(MostPopular(), grid, scoring=scorer("nDCG@3"), cv=KFold(3), error_score="raise")
    search.fit(X, Y)
    assert search.best_params_ == {"turned": False}
    assert search.best_score_ > search.cv_results_["mean_test_score"][0]


def test_several_metrics_at_once():
    X, Y = popular_data()
    scoring = {name: scorer(name) for name in ("P@1", "coverage@3")}
    found = cross_validate(MostPopular(), X, Y.toarray(), scoring=scoring, cv=KFold(2), error_score="raise")
    assert found["test_P@1"].shape == found["test_coverage@3"].shape == (2,)


def test_a_longer_list_shows_the_ties_past_k():
    X = np.zeros((2, 1))
    model = MostPopular().fit(X, [["a"], ["b"]])
    assert scorer("P@1")(model, X, [["a"], ["a"]]) == 1
    assert scorer("P@1", list_length=2)(model, X, [["a"], ["a"]]) == pytest.approx(1 / 2)


def test_a_scorer_survives_pickling_and_cloning():
    X, Y = popular_data()
    model = MostPopular().fit(X, Y)
    original = scorer("P@3")
    search = clone(GridSearchCV(MostPopular(), {}, scoring=original))
    for copy in (pickle.loads(pickle.dumps(original)), search.scoring):
        assert copy(model, X, Y) == original(model, X, Y)


@pytest.mark.parametrize("name", ["P", "P@", "P@0", "P@-1", "p@1", "F1@3", "P@1.5", "", "P@1 "])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(LabelwoodError, match="scorer: name must be one of P, R"):
        scorer(name)


def test_missing_propensities_and_short_lists_are_refused():
    with pytest.raises(LabelwoodError, match="inv_propensity must be given for PSP@3"):
        scorer("PSP@3")
    with pytest.raises(LabelwoodError, match="list_length must be at least k, which is 5; got 3"):
        scorer("P@5", list_length=3)
