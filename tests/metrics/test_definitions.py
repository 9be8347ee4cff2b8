"""Cases small enough to work out by hand."""

import math

import numpy as np
import pytest

from labelwood import metrics
from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, TopK, from_lists


def topk(labels: list[list[int]], scores: list[list[float]] | None = None) -> TopK:
    """Lists as a TopK; without scores, each list falls strictly."""
    ids = np.array(labels, np.int32)
    falling = np.linspace(1, 0.5, ids.shape[1]) * np.ones(ids.shape)
    return TopK(ids, np.where(ids == -1, 0, falling if scores is None else scores).astype(np.float32))


# rows: two of three right, in places 1 and 3; the one true label in place 2; nothing true
Y = from_lists([[0, 3, 4], [1], []], n_cols=6)
TOP = topk([[3, 2, 0], [2, 1, 5], [0, 1, 2]])


def test_precision():
    assert metrics.precision_at_k(Y, TOP, 1) == pytest.approx((1 + 0 + 0) / 3)
    assert metrics.precision_at_k(Y, TOP, 2) == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert metrics.precision_at_k(Y, TOP, 3) == pytest.approx((2 / 3 + 1 / 3 + 0) / 3)


def test_recall():
    assert metrics.recall_at_k(Y, TOP, 1) == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert metrics.recall_at_k(Y, TOP, 3) == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_ndcg_is_normalised_by_what_the_row_allows():
    second = 1 / math.log2(3)
    assert metrics.ndcg_at_k(Y, TOP, 3) == pytest.approx(((1 + 0.5) / (1 + second + 0.5) + second + 0) / 3)


def test_propensity_scored_precision():
    weights = [2.0, 3.0, 1.0, 1.0, 5.0, 1.0]
    raw = ((1 + 2) / 3 + 3 / 3 + 0) / 3
    best = ((5 + 2 + 1) / 3 + 3 / 3 + 0) / 3
    assert metrics.psp_at_k(Y, TOP, 3, weights, normalised=False) == pytest.approx(raw)
    assert metrics.psp_at_k(Y, TOP, 3, weights) == pytest.approx(raw / best)
    assert metrics.psp_at_k(Y, TOP, 1, weights) == pytest.approx((1 / 3) / ((5 + 3) / 3))


def test_propensity_scored_ndcg():
    weights = [2.0, 3.0, 1.0, 1.0, 5.0, 1.0]
    second = 1 / math.log2(3)
    ideal = 1 + second + 0.5
    raw = ((1 + 2 * 0.5) / ideal + 3 * second + 0) / 3
    best = ((5 + 2 * second + 1 * 0.5) / ideal + 3 + 0) / 3
    assert metrics.psndcg_at_k(Y, TOP, 3, weights, normalised=False) == pytest.approx(raw)
    assert metrics.psndcg_at_k(Y, TOP, 3, weights) == pytest.approx(raw / best)


def test_coverage_counts_only_labels_with_a_test_positive():
    assert metrics.coverage_at_k(Y, TOP, 1) == pytest.approx(1 / 4)
    assert metrics.coverage_at_k(Y, TOP, 3) == pytest.approx(3 / 4)


def test_macro_f1():
    # labels 0 and 1: right once, predicted twice, true once; 3: right; 4: missed; 2 and 5 have no truth
    assert metrics.macro_f1_at_k(Y, TOP, 3) == pytest.approx((2 / 3 + 2 / 3 + 1 + 0) / 4)


def test_a_tie_across_the_cut_is_averaged():
    top = topk([[0, 1, 2, 3, 4]], [[0.9, 0.8, 0.5, 0.5, 0.1]])
    truth = from_lists([[0, 3]], n_cols=5)
    assert metrics.precision_at_k(truth, top, 3) == pytest.approx((1 + 0 + 0.5) / 3)
    assert metrics.recall_at_k(truth, top, 3) == pytest.approx((1 + 0.5) / 2)
    assert metrics.coverage_at_k(truth, top, 3) == pytest.approx((1 + 0.5) / 2)
    # place 4 closes the block: nothing is left to chance
    assert metrics.precision_at_k(truth, top, 4) == pytest.approx(2 / 4)


def test_coverage_of_a_label_tied_in_two_rows():
    top = topk([[0, 1], [0, 2]], [[0.5, 0.5], [0.5, 0.5]])
    assert metrics.coverage_at_k(from_lists([[0], [0]], n_cols=3), top, 1) == pytest.approx(1 - 0.5 * 0.5)


def test_padding_neither_counts_nor_ties_with_a_score_of_zero():
    truth = from_lists([[1, 2]], n_cols=3)
    top = topk([[1, 2, -1, -1]], [[0.5, 0.0, 0.0, 0.0]])
    assert metrics.precision_at_k(truth, top, 2) == 1
    assert metrics.precision_at_k(truth, top, 4) == pytest.approx(2 / 4)
    # -1 is not the last label, even where that one is true
    assert metrics.precision_at_k(truth, topk([[-1, -1]]), 2) == 0
    assert metrics.psp_at_k(truth, topk([[-1, -1]]), 2, [1, 1, 1]) == 0


def test_k_past_the_list_divides_by_k():
    truth = from_lists([[0, 1]], n_cols=3)
    assert metrics.precision_at_k(truth, topk([[0]]), 5) == pytest.approx(1 / 5)
    assert metrics.ndcg_at_k(truth, topk([[0]]), 5) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert metrics.recall_at_k(truth, TopK(np.empty((1, 0), np.int32), np.empty((1, 0), np.float32)), 5) == 0


def test_nothing_true_at_all_scores_zero():
    found = metrics.evaluate(from_lists([[], []], n_cols=3), topk([[0, 1], [1, 2]]), inv_propensity=[1, 2, 3])
    assert set(found.values()) == {0.0}


def test_evaluate_has_every_metric_at_every_k_and_agrees_with_the_functions():
    weights = metrics.inverse_propensities([3, 1, 4, 1, 5, 9], 23)
    found = metrics.evaluate(Y, TOP, ks=(1, 3), inv_propensity=weights)
    names = ["P", "R", "nDCG", "coverage", "macroF1", "PSP", "PSnDCG"]
    assert list(found) == [f"{name}@{k}" for name in names for k in (1, 3)]
    assert all(type(value) is float and 0 <= value <= 1 for value in found.values())
    assert found["P@3"] == metrics.precision_at_k(Y, TOP, 3)
    assert found["R@3"] == metrics.recall_at_k(Y, TOP, 3)
    assert found["nDCG@3"] == metrics.ndcg_at_k(Y, TOP, 3)
    assert found["coverage@3"] == metrics.coverage_at_k(Y, TOP, 3)
    assert found["macroF1@3"] == metrics.macro_f1_at_k(Y, TOP, 3)
    assert found["PSP@1"] == pytest.approx(metrics.psp_at_k(Y, TOP, 1, weights))
    assert found["PSnDCG@3"] == pytest.approx(metrics.psndcg_at_k(Y, TOP, 3, weights))


def test_evaluate_without_propensities_leaves_their_metrics_out():
    assert not any(key.startswith("PS") for key in metrics.evaluate(Y, TOP))


@pytest.mark.parametrize(
    ("top", "message"),
    [
        (topk([[0, 1], [1, 2]]), "one row per predicted list"),
        (topk([[0, 6], [1, 2], [1, 2]]), r"in \[0, 6\).*got 0..6"),
        (topk([[0, -2], [1, 2], [1, 2]]), r"got -2..2"),
        (topk([[-1, 0], [1, 2], [1, 2]]), "padding"),
        (topk([[0, 1], [2, 2], [1, 2]]), "distinct"),
        (topk([[0, 1], [1, 2], [1, 2]], [[1, 0], [0, 1], [1, 0]]), "best first"),
        (topk([[0, 1], [1, 2], [1, 2]], [[1, math.nan], [1, 0], [1, 0]]), "NaN"),
        (TopK(TOP.labels, TOP.scores[:, :2]), "one shape"),
        (TopK(TOP.scores, TOP.scores), "integer ids"),
    ],
)
def test_a_broken_prediction_is_refused(top, message):
    with pytest.raises(LabelwoodError, match=message):
        metrics.evaluate(Y, top)


def test_a_broken_truth_is_refused():
    with pytest.raises(LabelwoodError, match="a Y matrix must hold 0 and 1; got 2"):
        metrics.evaluate(CSR(Y.indptr, Y.indices, Y.data * 2, Y.n_cols), TOP)
    with pytest.raises(LabelwoodError, match="at least one label"):
        metrics.evaluate(from_lists([[]], n_cols=0), topk([[-1]]))
    with pytest.raises(LabelwoodError, match="at least 1; got 0 and 0"):
        metrics.evaluate(from_lists([], n_cols=3), TopK(np.empty((0, 2), np.int32), np.empty((0, 2), np.float32)))


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "1"])
def test_a_broken_k_is_refused(k):
    with pytest.raises(LabelwoodError, match="k must be an integer, at least 1"):
        metrics.precision_at_k(Y, TOP, k)


def test_no_k_is_refused():
    with pytest.raises(LabelwoodError, match="at least one k"):
        metrics.evaluate(Y, TOP, ks=())
