"""Outlines of trees: sizes, balance, labels and words, on trees that can be checked by hand."""

import json

import numpy as np
import pytest

from labelwood import METHODS, GraphForest, LabelwoodError, LinearTree, OneVsRest
from labelwood.viz.outline import outline
from labelwood.viz.render import to_dot, to_json, to_page

NAMES = ["a", "b", "c", "d", "e"]


def by_hand(**parameters):
    X = np.eye(5, dtype=np.float32).repeat([3, 1, 2, 1, 1], axis=0)
    rows = [[name] for name, count in zip(NAMES, [3, 1, 2, 1, 1], strict=True) for _ in range(count)]
    return LinearTree(hierarchy=[["a", "b", "e"], ["c", "d"]], n_jobs=1, **parameters).fit(X, rows)


@pytest.mark.parametrize("threshold", [0.1, None])
def test_a_label_tree_by_hand(threshold):
    found = outline(by_hand(weight_threshold=threshold), feature_name=lambda column: f"word {NAMES[column]}")
    assert found.kind == "labels"
    assert found.size[0] == 5
    groups = range(found.child_ptr[0], found.child_ptr[1])
    by_size = {found.size[node]: node for node in groups}
    assert set(by_size) == {2, 3}
    assert found.balance[by_size[3]] == pytest.approx(1)
    shares = np.array([0.6, 0.4])
    assert found.balance[0] == pytest.approx(-(shares * np.log2(shares)).sum(), abs=1e-3)
    assert [found.label_names[label] for label, _ in found.labels[0]][:2] == ["a", "c"]
    assert [count for _, count in found.labels[by_size[3]]] == [3, 1, 1]
    leaf = found.label.index(found.label_names.index("c"))
    assert found.words[leaf][0][0] == "word c"
    assert found.words[0] == []


def test_many_children_at_once():
    X = np.eye(600, dtype=np.float32)
    found = outline(OneVsRest(weight_threshold=None, n_jobs=1).fit(X, X > 0))
    assert [words[0][0] for words in found.words[1:]] == [f"feature {label}" for label in found.label[1:]]


def test_a_forest_by_hand():
    X = np.eye(2, dtype=np.float32).repeat(20, axis=0)
    model = GraphForest(n_trees=2, max_leaf=20, n_jobs=1).fit(X, [["left"]] * 20 + [["right"]] * 20)
    for tree in (0, 1):
        found = outline(model, tree=tree)
        assert (found.kind, found.size, found.child_ptr) == ("leaves", [2, 1, 1], [1, 3, 3, 3])
        assert found.labels[0] == [(0, pytest.approx(0.5)), (1, pytest.approx(0.5))]
        assert sorted(labels[0][0] for labels in found.labels[1:]) == [0, 1]
        assert all(labels[0][1] == pytest.approx(1) for labels in found.labels[1:])
    with pytest.raises(LabelwoodError, match="has 2 trees, numbered from 0; there is no tree 2"):
        outline(model, tree=2)


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_has_an_outline(method, tmp_path):
    X = np.eye(12, dtype=np.float32).repeat(4, axis=0)
    rows = [[f"label {row // 4}"] for row in range(48)]
    found = outline(METHODS[method](n_jobs=1).fit(X, rows))
    n_nodes = found.n_nodes
    assert found.child_ptr[0] == 1
    assert found.child_ptr[-1] == n_nodes
    columns = (found.label, found.size, found.balance, found.labels, found.words)
    assert all(len(column) == n_nodes for column in columns)
    for node in range(n_nodes):
        below = range(found.child_ptr[node], found.child_ptr[node + 1])
        assert found.size[node] == (sum(found.size[child] for child in below) if below else 1)
        assert 0 <= found.balance[node] <= 1


def test_json_and_drawing():
    found = outline(by_hand())
    assert json.loads(to_json(found))["size"] == found.size
    drawing = to_dot(found, depth=1)
    assert drawing.count("->") == 2
    assert to_dot(found, depth=9).count("->") == found.n_nodes - 1


def test_the_page_needs_nothing_and_labels_cannot_break_it():
    model = OneVsRest(n_jobs=1).fit(np.eye(2, dtype=np.float32), [["</script><b>"], ["<!-- x"]])
    page = to_page(outline(model), title="model")
    assert page.count("</script>") == 2
    assert "<!-- x" not in page
    assert "http" not in page.replace("<!doctype html>", "")
