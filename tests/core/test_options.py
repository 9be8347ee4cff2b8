"""The dict of options that kernels take: every key is read by name, once, and must have its type."""

import numpy as np
import pytest

from labelwood import _core

GOOD = {
    "policy": "random", "arity": 2, "max_leaf": 4, "alpha": 0.75, "seed": 0,
    "printed_balance": False, "epsilon_outside": False,
    "learning_rate": 1.0, "epsilon": 0.01, "bias": 1.0, "normalize": False,
}  # fmt: skip


def test_whole_numbers_of_python_and_numpy_are_taken():
    for arity in (3, np.int64(3), np.uint8(3)):
        _core.OnlineTree({**GOOD, "arity": arity, "alpha": 1, "bias": np.float32(0.5)})


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_key_is_named(name):
    with pytest.raises(KeyError, match=f"missing option {name}"):
        _core.OnlineTree({key: value for key, value in GOOD.items() if key != name})


def test_an_unknown_key_is_named():
    with pytest.raises(TypeError, match="unknown option max_leaves"):
        _core.OnlineTree({**GOOD, "max_leaves": 4})


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("arity", 2.0, "an integer in range; got 2.0"),
        ("arity", "2", "an integer in range; got '2'"),
        ("arity", True, "an integer in range; got True"),
        ("arity", 2**31, "an integer in range; got 2147483648"),
        ("seed", -1, "an integer in range; got -1"),
        ("alpha", None, "a number; got None"),
        ("alpha", "0.5", "a number; got '0.5'"),
        ("alpha", False, "a number; got False"),
        ("normalize", 1, "a bool; got 1"),
        ("policy", 1, "one of best-greedy random complete flat; got 1"),
        ("policy", "best", "one of best-greedy random complete flat; got 'best'"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(name, value, wanted):
    with pytest.raises(TypeError, match=f"^option {name} must be {wanted}$"):
        _core.OnlineTree({**GOOD, name: value})


def test_an_array_of_the_wrong_type_is_named():
    tree = _core.OnlineTree(GOOD)
    state = {**tree.state(), "label": np.zeros(1, np.float64)}
    with pytest.raises(TypeError, match="option label must be an array of its type"):
        _core.OnlineTree(GOOD).restore(state, True, 0, 0, 0, 0)
