"""Hierarchical metrics and near misses against plain sets, and a case worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood.metrics.hierarchical import hierarchical_scores, near_miss_share, near_misses
from labelwood.sparse import TopK, from_lists
from labelwood.vocabulary import Concept, Vocabulary
from labelwood.vocabulary.concept import BROADER, Link
from labelwood.vocabulary.hierarchy import hierarchy_of

#      a
#     / \
#    b   c      d alone
#   / \
#  e   f
PARENTS = {"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["b"], "f": ["b"]}
LABELS = sorted(PARENTS)


def vocabulary_of(parents):
    return Vocabulary.of(Concept(x, (), tuple(Link(BROADER, y) for y in above)) for x, above in parents.items())


def top_of(rows, width):
    labels = np.full((len(rows), width), -1, np.int32)
    for place, row in enumerate(rows):
        labels[place, : len(row)] = row
    scores = np.where(labels >= 0, np.linspace(1, 0.5, width, dtype=np.float32), 0)
    return TopK(labels, scores.astype(np.float32))


def with_ancestors(labels, parents):
    found, waiting = set(labels), list(labels)
    while waiting:
        fresh = [one for one in parents[waiting.pop()] if one not in found]
        found.update(fresh)
        waiting += fresh
    return found


def test_a_case_worked_by_hand():
    hierarchy = hierarchy_of(vocabulary_of(PARENTS), LABELS, len(LABELS))
    # True: e. Predicted: f and b. {e, b, a} and {f, b, a}: hP@1 = 2/3, hR@1 = 2/3. f is no near miss, b is one.
    Y, top = from_lists([[4]], 6), top_of([[5, 1]], 2)
    assert hierarchical_scores(Y, top, hierarchy.above, 1) == pytest.approx(
        {"hP@1": 2 / 3, "hR@1": 2 / 3, "hF1@1": 2 / 3}
    )
    assert near_miss_share(Y, top, hierarchy.near, 1) == 0
    assert near_miss_share(Y, top, hierarchy.near, 2) == 0.5
    assert near_misses(Y, top, hierarchy.near, 2).tolist() == [0, 1, 0, 0, 0, 0]


def test_without_broader_concepts_there_is_no_hierarchy():
    assert hierarchy_of(Vocabulary.of([Concept("a")]), ["a"], 1) is None


nodes = st.integers(0, 6)


@given(
    st.lists(st.lists(nodes, unique=True, max_size=2), min_size=7, max_size=7),
    st.lists(st.tuples(st.lists(nodes, unique=True), st.lists(nodes, unique=True, max_size=4)), min_size=1, max_size=5),
    st.integers(1, 4),
)
def test_against_plain_sets(links, rows, k):
    """Any links, also cycles and several parents; label 6 is not in the vocabulary."""
    parents = {node: [other for other in above if other not in (node, 6)] for node, above in enumerate(links)}
    parents[6] = []
    known = vocabulary_of({str(node): [str(other) for other in parents[node]] for node in range(6)})
    hierarchy = hierarchy_of(known, [str(node) for node in range(6)], 7)
    if hierarchy is None:
        return
    Y, top = from_lists([sorted(true) for true, _ in rows], 7), top_of([said for _, said in rows], 4)
    predicted = [with_ancestors(said[:k], parents) for _, said in rows]
    true = [with_ancestors(given, parents) for given, _ in rows]
    common = sum(len(one & other) for one, other in zip(predicted, true, strict=True))
    n_predicted, n_true = sum(map(len, predicted)), sum(map(len, true))
    found = hierarchical_scores(Y, top, hierarchy.above, k)
    assert found[f"hP@{k}"] == pytest.approx(common / max(n_predicted, 1))
    assert found[f"hR@{k}"] == pytest.approx(common / max(n_true, 1))
    near = [
        label
        for given, said in rows
        for label in said[:k]
        if label not in given and any(label in parents[one] or one in parents[label] for one in given)
    ]
    assert near_miss_share(Y, top, hierarchy.near, k) == pytest.approx(len(near) / (len(rows) * k))
    assert near_misses(Y, top, hierarchy.near, k).tolist() == [near.count(label) for label in range(7)]
