from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood import metrics
from labelwood.errors import LabelwoodError
from labelwood.metrics import BINS, frequency_bins
from labelwood.sparse import TopK, from_lists


def test_bins_by_share_of_occurrences():
    # of 100 occurrences the strictly more frequent labels hold 0, .4, .4, .8, .8
    bins = frequency_bins([40, 20, 20, 10, 10, 0])
    assert [BINS[i] for i in bins] == ["head", "head", "head", "middle", "middle", "unseen"]
    # and here 0, .4, .61, .81, .91
    bins = frequency_bins([40, 21, 20, 10, 9, 0], head=0.4, middle=0.9)
    assert [BINS[i] for i in bins] == ["head", "middle", "middle", "middle", "tail", "unseen"]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_bins_depend_on_the_count_alone_and_fall_with_it(counts):
    bins = frequency_bins(counts)
    by_count = sorted(zip(counts, bins, strict=True), key=lambda pair: -pair[0])
    assert all(a[1] <= b[1] for a, b in pairwise(by_count))
    assert all(a[1] == b[1] for a, b in pairwise(by_count) if a[0] == b[0])
    assert (max(counts) > 0) == (0 in bins)
    assert ((bins == BINS.index("unseen")) == (np.array(counts) == 0)).all()


def random_case(seed):
    rng = np.random.default_rng(seed)
    truth = from_lists([list(rng.choice(20, rng.integers(0, 5), replace=False)) for _ in range(30)], 20)
    labels = np.array([rng.choice(20, 5, replace=False) for _ in range(30)], np.int32)
    scores = -np.sort(-rng.integers(0, 6, (30, 5)) / 8, axis=1).astype(np.float32)
    counts = (100 / np.arange(1, 21) ** 1.5).astype(int)
    counts[-2:] = 0
    return truth, TopK(labels, scores), counts


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_bins_together_are_the_whole(k):
    truth, top, counts = random_case(k)
    report = metrics.report_by_frequency(truth, top, counts, ks=(k,))
    whole = metrics.evaluate(truth, top, ks=(k,))
    assert list(report) == list(BINS)
    assert all(report[name]["labels"] > 0 for name in BINS)
    assert sum(part[f"P@{k}"] for part in report.values()) == pytest.approx(whole[f"P@{k}"])
    assert sum(part["test_share"] for part in report.values()) == pytest.approx(1)
    n_tested = sum(part["labels_tested"] for part in report.values())
    for name in (f"coverage@{k}", f"macroF1@{k}"):
        mean = sum(part[name] * part["labels_tested"] for part in report.values()) / n_tested
        assert mean == pytest.approx(whole[name])


def test_a_report_by_hand():
    truth = from_lists([[0, 2], [0, 1], [3]], n_cols=4)
    top = TopK(np.array([[0, 1], [1, 3], [0, 1]], np.int32), np.array([[2, 1]] * 3, np.float32))
    report = metrics.report_by_frequency(truth, top, [60, 35, 5, 0], ks=(2,))
    head, middle, tail, unseen = (report[name] for name in BINS)
    assert head["least_count"] == head["most_count"] == 60
    assert head["test_share"] == pytest.approx(2 / 5)
    assert head["P@2"] == pytest.approx(1 / 6)
    assert head["R@2"] == pytest.approx(1 / 2)
    assert head["coverage@2"] == 1
    assert head["macroF1@2"] == pytest.approx(2 * 1 / (2 + 2))
    assert (middle["R@2"], middle["macroF1@2"]) == (1, pytest.approx(2 * 1 / (3 + 1)))
    assert (tail["R@2"], tail["coverage@2"], tail["labels_tested"]) == (0, 0, 1)
    assert (unseen["labels"], unseen["P@2"], unseen["macroF1@2"]) == (1, 0, 0)


def test_evaluate_carries_the_report_flattened():
    truth, top, counts = random_case(0)
    found = metrics.evaluate(truth, top, ks=(5,), train_label_counts=counts)
    report = metrics.report_by_frequency(truth, top, counts, ks=(5,))
    assert found["tail/R@5"] == report["tail"]["R@5"]
    assert sum("/" in key for key in found) == sum(map(len, report.values()))


def test_label_counts_counts_rows():
    assert metrics.label_counts(from_lists([[0, 2], [2], []], n_cols=4)).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("counts", [[1, 2], [1, 2, -1], [1, 2, np.nan], [[1, 2, 3]], ["a", "b", "c"]])
def test_bad_counts_are_refused(counts):
    truth, top = from_lists([[0]], 3), TopK(np.array([[0]], np.int32), np.array([[1]], np.float32))
    with pytest.raises(LabelwoodError, match="train_label_counts must"):
        metrics.report_by_frequency(truth, top, counts)


def test_bad_shares_are_refused():
    with pytest.raises(LabelwoodError, match=r"got 0\.9, 0\.5"):
        frequency_bins([1, 2], head=0.9, middle=0.5)
