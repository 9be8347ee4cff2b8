"""Metrics against plain loops averaged over every order of every tied block, and against scikit-learn."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score

from labelwood import metrics
from labelwood.sparse import TopK, from_lists


@st.composite
def cases(draw, max_rows=5, max_width=4, tie=True):
    """Truth as lists of labels, predictions as lists of (label, score), number of labels."""
    n_labels = draw(st.integers(2, 7))
    label = st.integers(0, n_labels - 1)
    n_rows = draw(st.integers(1, max_rows))
    truth = [draw(st.lists(label, unique=True, max_size=4)) for _ in range(n_rows)]
    lists = []
    for _ in range(n_rows):
        ids = draw(st.lists(label, unique=True, max_size=max_width))
        levels = [0.0, 0.25, 0.5] if tie else [i / 16 for i in range(16)]
        scores = draw(st.lists(st.sampled_from(levels), min_size=len(ids), max_size=len(ids), unique=not tie))
        lists.append(list(zip(ids, sorted(scores, reverse=True), strict=True)))
    return truth, lists, n_labels


def as_topk(lists, width):
    labels, scores = np.full((len(lists), width), -1, np.int32), np.zeros((len(lists), width), np.float32)
    for row, items in enumerate(lists):
        for place, (label, score) in enumerate(items):
            labels[row, place], scores[row, place] = label, score
    return TopK(labels, scores)


def orders(items):
    """Every ranking a list of (label, score) stands for."""
    blocks = [[label for label, _ in block] for _, block in itertools.groupby(items, key=lambda item: item[1])]
    for chosen in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [label for block in chosen for label in block]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def discounted(gains):
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def row_values(true, ranking, k, weights):
    """P, R, nDCG, raw PSP and raw PSnDCG of one ranking of one row."""
    hits = [1 if label in true else 0 for label in ranking[:k]]
    weighted = [weights[label] if label in true else 0 for label in ranking[:k]]
    ideal = discounted([1] * min(k, len(true)))
    return np.array(
        [
            sum(hits) / k,
            sum(hits) / len(true) if true else 0,
            discounted(hits) / ideal if true else 0,
            sum(weighted) / k,
            discounted(weighted) / ideal if true else 0,
        ]
    )


@given(cases(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_row_metrics_are_the_mean_over_every_order(case, k, seed):
    truth, lists, n_labels = case
    weights = np.random.default_rng(seed).uniform(1, 9, n_labels)
    expected = mean(
        mean(row_values(true, ranking, k, weights) for ranking in orders(items))
        for true, items in zip(truth, lists, strict=True)
    )
    best = mean(row_values(true, sorted(true, key=lambda label: -weights[label]), k, weights)[3:] for true in truth)
    Y, top = from_lists(truth, n_labels), as_topk(lists, 5)
    found = metrics.evaluate(Y, top, (k,), weights)
    assert [found[f"P@{k}"], found[f"R@{k}"], found[f"nDCG@{k}"]] == pytest.approx(expected[:3])
    assert metrics.psp_at_k(Y, top, k, weights, normalised=False) == pytest.approx(expected[3])
    assert metrics.psndcg_at_k(Y, top, k, weights, normalised=False) == pytest.approx(expected[4])
    normalised = expected[3:] / best if any(truth) else np.zeros(2)
    assert [found[f"PSP@{k}"], found[f"PSnDCG@{k}"]] == pytest.approx(normalised)


@given(cases(max_rows=2), st.integers(1, 6))
def test_coverage_is_the_mean_over_every_joint_order(case, k):
    truth, lists, n_labels = case
    positive = set().union(*truth)

    def covered(rankings):
        right = set().union(*(set(r[:k]) & set(t) for r, t in zip(rankings, truth, strict=True)))
        return len(right) / len(positive) if positive else 0

    expected = mean(covered(rankings) for rankings in itertools.product(*(list(orders(i)) for i in lists)))
    found = metrics.coverage_at_k(from_lists(truth, n_labels), as_topk(lists, 5), k)
    assert found == pytest.approx(expected)


@given(cases(), st.integers(1, 6))
def test_macro_f1_is_that_of_the_mean_counts(case, k):
    truth, lists, n_labels = case
    right, predicted, positive = np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels)
    for true, items in zip(truth, lists, strict=True):
        positive[true] += 1
        rankings = list(orders(items))
        for ranking in rankings:
            for label in ranking[:k]:
                predicted[label] += 1 / len(rankings)
                right[label] += (label in true) / len(rankings)
    f1 = [2 * right[i] / (predicted[i] + positive[i]) for i in range(n_labels) if positive[i]]
    found = metrics.macro_f1_at_k(from_lists(truth, n_labels), as_topk(lists, 5), k)
    assert found == pytest.approx(mean(f1) if f1 else 0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.booleans())
def test_ndcg_is_scikit_learns_when_the_list_ranks_every_label(seed, k, tie):
    rng = np.random.default_rng(seed)
    dense = rng.random((4, 6)) < 0.4
    scores = rng.integers(0, 4, (4, 6)) / 4 if tie else rng.permuted(np.tile(np.arange(6), (4, 1)), axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    top = TopK(order.astype(np.int32), np.take_along_axis(scores, order, 1).astype(np.float32))
    Y = from_lists([list(np.flatnonzero(row)) for row in dense], 6)
    assert metrics.ndcg_at_k(Y, top, k) == pytest.approx(ndcg_score(dense, scores, k=k, ignore_ties=False))


@given(cases(tie=False).filter(lambda case: any(case[0])), st.integers(1, 4))
def test_macro_f1_is_scikit_learns_over_the_labels_with_a_positive(case, k):
    truth, lists, n_labels = case
    Y, top = from_lists(truth, n_labels), as_topk(lists, 4)
    predicted = from_lists([[label for label, _ in items[:k]] for items in lists], n_labels)
    theirs = f1_score(
        Y.to_scipy().toarray().astype(int),
        predicted.to_scipy().toarray().astype(int),
        labels=sorted(set().union(*truth)),
        average="macro",
        zero_division=0,
    )
    assert metrics.macro_f1_at_k(Y, top, k) == pytest.approx(theirs)


@given(cases(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_order_inside_a_tied_block_does_not_matter(case, k, random):
    truth, lists, n_labels = case
    shuffled = [random.choice(list(orders(items))) for items in lists]
    relisted = [
        [(label, score) for label, (_, score) in zip(ranking, items, strict=True)]
        for ranking, items in zip(shuffled, lists, strict=True)
    ]
    Y, weights = from_lists(truth, n_labels), np.arange(1, n_labels + 1)
    one = metrics.evaluate(Y, as_topk(lists, 5), (k,), weights, weights)
    other = metrics.evaluate(Y, as_topk(relisted, 5), (k,), weights, weights)
    assert one == pytest.approx(other)


@given(case=cases(tie=False), k=st.integers(1, 5))
def test_f1_and_ndcg_as_annif_defines_them(case, k):
    """F1 is scikit-learn's mean over samples; the divisor of the nDCG counts all true labels, also those beyond k."""
    truth, lists, n_labels = case
    Y, top = from_lists(truth, n_labels), as_topk(lists, 4)
    chosen = [[label for label, _ in items[:k]] for items in lists]
    want = f1_score(
        Y.to_scipy().toarray(), from_lists(chosen, n_labels).to_scipy().toarray(), average="samples", zero_division=0
    )
    assert metrics.f1_at_k(Y, top, k) == pytest.approx(want)
    quotients = []
    for labels, listed in zip(truth, chosen, strict=True):
        gain = sum(1 / math.log2(place + 1) for place, label in enumerate(listed, start=1) if label in labels)
        best = sum(1 / math.log2(place + 1) for place in range(1, len(labels) + 1))
        quotients.append(gain / best if labels else 0.0)
    assert metrics.ndcg_of_all_at_k(Y, top, k) == pytest.approx(mean(quotients))
