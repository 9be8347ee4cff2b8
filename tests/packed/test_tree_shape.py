"""Frozen label trees and the builders that need no training data."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood.errors import LabelwoodError, LabelwoodWarning
from labelwood.packed.tree_shape import LabelTree, flat_tree, freeze, hierarchy_tree, huffman_tree, random_tree


def depths(tree):
    """Depth of every label."""
    found = {}
    for node in range(tree.n_nodes):
        if tree.label[node] >= 0:
            depth, at = 0, node
            while at > 0:
                at, depth = int(tree.parent[at]), depth + 1
            found[int(tree.label[node])] = depth
    return found


@settings(max_examples=60)
@given(st.integers(1, 200), st.integers(2, 9), st.integers(1, 12), st.integers(0, 5))
def test_random_trees_are_balanced(n_labels, arity, max_leaf, seed):
    tree = random_tree(n_labels, arity=arity, max_leaf=max_leaf, seed=seed).check(n_labels)
    widths = np.diff(tree.child_ptr)[tree.inner]
    assert widths.max() <= max(arity, max_leaf, 2)
    assert max(depths(tree).values()) - min(depths(tree).values()) <= 1
    assert tree.depth == max(depths(tree).values())


@settings(max_examples=60)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(2, 5))
def test_huffman_trees_put_frequent_labels_near_the_root(counts, arity):
    tree = huffman_tree(counts, arity=arity).check(len(counts))
    assert np.diff(tree.child_ptr).max() <= max(arity, 1)
    depth = depths(tree)
    for a in range(len(counts)):
        for b in range(len(counts)):
            if counts[a] > counts[b]:
                assert depth[a] <= depth[b]


def test_binary_huffman_by_hand():
    """5 | (2 | (1 | 1)): expected depth (5*1 + 2*2 + 1*3 + 1*3) / 9."""
    assert depths(huffman_tree([1, 5, 2, 1], arity=2)) == {0: 3, 1: 1, 2: 2, 3: 3}


def test_freeze_orders_breadth_first():
    tree = freeze([-1, 0, 1, 1, 0, 4], [-1, -1, 3, 1, -1, 0])
    assert tree.label.tolist() == [-1, -1, -1, 3, 1, 0]
    assert tree.child_ptr.tolist() == [1, 3, 5, 6, 6, 6, 6]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2]
    assert tree.level_ptr.tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize(
    ("child_ptr", "label"),
    [
        ([1, 3, 3], [-1, 0]),  # too few pointers
        ([0, 2, 2, 2], [-1, 0, 1]),  # does not start at 1
        ([1, 1, 3, 3], [0, -1, 1]),  # a cycle: node 1 under itself
        ([1, 3, 3, 3], [-1, 0, 0]),  # a label twice
        ([1, 3, 3, 3], [-1, 0, -1]),  # an inner node without children
        ([1, 3, 3, 3], [-1, 0, 7]),  # a label out of range
    ],
)
def test_broken_trees_are_refused(child_ptr, label):
    with pytest.raises(LabelwoodError, match="LabelTree"):
        LabelTree(np.array(child_ptr, np.int32), np.array(label, np.int32)).check(2)


def test_hierarchies(tmp_path):
    names = ["a", "b", "c", "d"]
    nested = {"first": ["a", "b"], "second": {"x": ["c"], "y": ["d"]}}
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(nested))
    parents = np.array([5, 5, 7, 8, -1, 4, 4, 6, 6])
    for hierarchy in (nested, str(path), parents):
        tree = hierarchy_tree(hierarchy, names).check(4)
        assert depths(tree) == {0: 2, 1: 2, 2: 3, 3: 3}


@pytest.mark.parametrize(
    ("hierarchy", "message"),
    [
        (
            ["x", "y"],
            "none of its 2 concepts is a label of the training data; concepts such as '[xy]', labels such as 'a'",
        ),
        (["a", "b", []], "must not be empty"),
        (np.array([3, 3, 4, 3, 4]), "one root"),
        ([3, 3, 3, -1, 5, 4], "cycle"),
        ([-1, 0, 0], "one root"),
    ],
)
def test_bad_hierarchies(hierarchy, message):
    with pytest.raises(LabelwoodError, match=message):
        hierarchy_tree(hierarchy, ["a", "b", "c"])


def shape_of(tree, names, node=0):
    """The tree as nested lists of names."""
    if tree.label[node] >= 0:
        return names[tree.label[node]]
    return [shape_of(tree, names, child) for child in range(tree.child_ptr[node], tree.child_ptr[node + 1])]


@pytest.mark.parametrize(
    ("hierarchy", "shape", "told"),
    [
        # concepts without training rows, and the groups that are empty without them
        ([["a", "x"], {"empty": ["y", ["z"]]}, ["b", "c"]], [["a"], ["b", "c"]], ["left out: 3 (such as 'x')"]),
        # labels that the hierarchy lacks
        ([["a"]], [["a"], ["b", "c"]], ["group of their own: 2 (such as 'b')"]),
        # a label that has narrower concepts belongs to its own group
        ({"a": {"b": ["x"], "other": ["c"]}}, [[["b"], ["c"], "a"]], ["left out: 1 (such as 'x')"]),
        # a polyhierarchy: the place nearest the root counts
        ([[["a", "b"]], ["b", "c"], "c"], [[["a"]], ["b"], "c"], ["nearest the root counts: 2 (such as 'c')"]),
        ([["a", "x", "a"]], [["a"], ["b", "c"]], ["left out: 1", "counts: 1 (such as 'a')", "their own: 2"]),
    ],
)
def test_hierarchies_of_other_concepts(hierarchy, shape, told):
    names = ["a", "b", "c"]
    with pytest.warns(LabelwoodWarning) as warned:
        tree = hierarchy_tree(hierarchy, names).check(3)
    assert shape_of(tree, names) == shape
    assert len(warned) == 1
    for words in told:
        assert words in str(warned[0].message)


concepts = st.recursive(
    st.sampled_from("abcdefxyz"),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4) | st.dictionaries(st.sampled_from("abcxyz"), inner, min_size=1)
    ),
    max_leaves=20,
)


def used(group):
    """The names in a hierarchy, of groups and of others; a name beside a single concept names no group."""
    members = group.items() if isinstance(group, dict) else ((None, member) for member in group)
    found = set()
    for name, member in members:
        found |= {member} if isinstance(member, str) else {name} | used(member)
    return found


@settings(max_examples=100)
@given(st.lists(concepts, min_size=1, max_size=5), st.integers(1, 6))
def test_any_hierarchy_with_a_label_is_a_tree(hierarchy, n_labels):
    names = list("abcdef"[:n_labels])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelwoodWarning)
        if not used(hierarchy) & set(names):
            with pytest.raises(LabelwoodError, match="none of its"):
                hierarchy_tree(hierarchy, names)
            return
        tree = hierarchy_tree(hierarchy, names)
    tree.check(n_labels)
    assert sorted(tree.label[tree.label >= 0].tolist()) == list(range(n_labels))


def test_flat_tree():
    assert flat_tree(3).check(3).depth == 1
