"""A parameter is declared once; everything else reads the declaration."""

from typing import Annotated, Literal

import numpy as np
import pytest

from labelwood.errors import LabelwoodError
from labelwood.params import Param, check_parameters, declared


class Example:
    def __init__(
        self,
        *,
        arity: Annotated[int, Param("children of an inner node", ge=2)] = 16,
        cost: Annotated[float, Param("cost of an error", gt=0, le=100)] = 1.0,
        loss: Annotated[Literal["hinge", "log"], Param("node loss")] = "hinge",
        cap: Annotated[int | Literal["auto"] | None, Param("largest leaf", ge=1)] = None,
        balanced: Annotated[bool, Param("equal halves")] = False,
        parents: Annotated[np.ndarray | None, Param("a tree of your own")] = None,
    ):
        self.arity, self.cost, self.loss, self.cap, self.balanced = arity, cost, loss, cap, balanced
        self.parents = parents


def test_declarations_in_order():
    found = declared(Example)
    assert list(found) == ["arity", "cost", "loss", "cap", "balanced", "parents"]
    assert found["arity"].default == 16
    assert found["arity"].param.help == "children of an inner node"
    assert found["loss"].choices == ("hinge", "log")
    assert found["cap"].optional
    assert found["cap"].kinds == (int,)
    assert found["parents"].kinds == (np.ndarray,)


def test_rules_in_words():
    rules = {name: parameter.rule for name, parameter in declared(Example).items()}
    assert rules == {
        "arity": "an integer, at least 2",
        "cost": "a number, greater than 0 and at most 100",
        "loss": "one of 'hinge', 'log'",
        "cap": "an integer or one of 'auto' or None, at least 1",
        "balanced": "true or false",
        "parents": "ndarray or None",
    }


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"arity": 2},
        {"arity": np.int32(7)},
        {"cost": 1},
        {"cost": np.float32(0.5)},
        {"cost": 100},
        {"loss": "log"},
        {"cap": None},
        {"cap": "auto"},
        {"cap": 1},
        {"balanced": np.True_},
        {"parents": np.zeros(3)},
    ],
)
def test_good_values_pass(parameters):
    check_parameters(Example(**parameters))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"arity": 1}, "Example: arity must be at least 2; got 1"),
        ({"arity": 2.0}, "Example: arity must be an integer, at least 2; got 2.0"),
        ({"arity": True}, "arity must be an integer, at least 2; got True"),
        ({"arity": None}, "arity must be an integer, at least 2; got None"),
        ({"cost": 0}, "cost must be greater than 0; got 0"),
        ({"cost": 101}, "cost must be at most 100; got 101"),
        ({"cost": float("nan")}, "cost must be finite; got nan"),
        ({"cost": float("inf")}, "cost must be finite; got inf"),
        ({"cost": "1"}, "cost must be a number, greater than 0 and at most 100; got '1'"),
        ({"loss": "squared"}, "loss must be one of 'hinge', 'log'; got 'squared'"),
        ({"cap": 0}, "cap must be at least 1; got 0"),
        ({"cap": "none"}, "cap must be an integer or one of 'auto' or None, at least 1; got 'none'"),
        ({"balanced": 1}, "balanced must be true or false; got 1"),
        ({"parents": [0, 0]}, r"parents must be ndarray or None; got \[0, 0\]"),
        ({"loss": np.zeros(2)}, "loss must be one of"),
    ],
)
def test_bad_values_are_named(parameters, message):
    with pytest.raises(LabelwoodError, match=message):
        check_parameters(Example(**parameters))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("arity", "4", 4),
        ("cost", "0.5", 0.5),
        ("cost", "2", 2.0),
        ("loss", "log", "log"),
        ("cap", "none", None),
        ("cap", "auto", "auto"),
        ("cap", "3", 3),
        ("balanced", "True", True),
    ],
)
def test_texts_are_read(name, text, value):
    found = declared(Example)[name].read(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text"), [("arity", "few"), ("loss", "Log"), ("balanced", "1"), ("parents", "[0]"), ("arity", "1")]
)
def test_texts_that_stand_for_nothing_are_refused(name, text):
    with pytest.raises(ValueError, match=r".*"):
        declared(Example)[name].read(text)


def test_a_parameter_without_declaration_is_a_mistake():
    class Forgetful:
        def __init__(self, *, arity: int = 2):
            self.arity = arity

    with pytest.raises(TypeError, match="arity has no Param annotation"):
        declared(Forgetful)
