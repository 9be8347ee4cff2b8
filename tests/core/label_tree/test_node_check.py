"""The check of packed weights against its twin, on sound weights and on damaged ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import node_check

from labelwood import _core

TYPES = [np.uint8, np.uint16, np.int32]


def sound(rng, kind):
    """The weights of a few nodes; some have no features, some features have no weights."""
    n_features, n_children = 20, rng.integers(1, 9, rng.integers(1, 6)).astype(np.int32)
    features = [np.flatnonzero(rng.random(n_features) < rng.random()) for _ in n_children]
    counts = [rng.integers(0, 4, len(own)) for own in features]
    arrays = {
        "feature_ptr": np.cumsum([0, *map(len, features)]),
        "features": np.concatenate(features).astype(np.int32),
        "weight_ptr": np.cumsum([0, *(int(own.sum()) for own in counts)]),
        "row_start": np.concatenate([np.cumsum(own) - own for own in counts]).astype(np.uint32),
        "child": np.concatenate(
            [rng.integers(0, width, own.sum()) for width, own in zip(n_children, counts, strict=True)]
        ).astype(kind),
    }
    return {**arrays, "n_children": n_children, "n_features": n_features}


@settings(max_examples=300)
@given(st.integers(0, 10**6), st.sampled_from(TYPES), st.sampled_from(["", "features", "row_start", "child"]))
def test_faults(seed, kind, damaged):
    rng = np.random.default_rng(seed)
    arrays = sound(rng, kind)
    assert _core.check_nodes(arrays) == node_check.first_fault(arrays) == 0
    if damaged and len(arrays[damaged]):
        limits = np.iinfo(arrays[damaged].dtype)
        wild = int(rng.choice([0, 1, 7, 19, 20, limits.max, limits.min, limits.max // 2]))
        arrays[damaged][rng.integers(len(arrays[damaged]))] = min(wild, limits.max)
        assert _core.check_nodes(arrays) == node_check.first_fault(arrays)


def test_dense_weights_have_features_only():
    rng = np.random.default_rng(0)
    arrays = {**sound(rng, np.int32), "row_start": np.empty(0, np.uint32), "child": np.empty(0, np.int32)}
    assert _core.check_nodes(arrays) == 0
    arrays["features"][-1] = 20
    assert _core.check_nodes(arrays) == node_check.first_fault(arrays) == node_check.RANGE


@pytest.mark.parametrize("fault", [node_check.ORDER, node_check.ROW_START, node_check.ROW_END, node_check.CHILD])
def test_each_fault_is_found(fault):
    arrays = {
        "feature_ptr": np.array([0, 0, 3]), "features": np.array([2, 5, 9], np.int32),
        "weight_ptr": np.array([0, 0, 4]), "row_start": np.array([0, 2, 3], np.uint32),
        "child": np.array([0, 1, 1, 0], np.uint8), "n_children": np.array([3, 2], np.int32), "n_features": 10,
    }  # fmt: skip
    assert _core.check_nodes(arrays) == 0
    name, place, value = {
        node_check.ORDER: ("features", 1, 2), node_check.ROW_START: ("row_start", 0, 3),
        node_check.ROW_END: ("row_start", 2, 5), node_check.CHILD: ("child", 3, 2),
    }[fault]  # fmt: skip
    arrays[name][place] = value
    assert _core.check_nodes(arrays) == node_check.first_fault(arrays) == fault
