"""Other classifiers in the nodes of the online tree."""

import math

import pytest

pytest.importorskip("experiments", reason="the repository is not on the path")

from experiments.living.twins import Averaged, Hinge

STEPS = [({0: 1.0, 1: 0.5}, True), ({1: 2.0}, False), ({0: 0.3, 2: 1.0}, True), ({2: 0.7}, True)]
QUESTION = {0: 0.4, 1: -1.0, 2: 0.6}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_average_is_that_of_the_weights_after_each_update(sign):
    model, weights = Averaged(1.0, 0.01, sign=sign), []
    for x, positive in STEPS:
        model.update(x, positive)
        weights.append(dict(model.weights))
    margins = [sign * sum(one.get(feature, 0.0) * value for feature, value in QUESTION.items()) for one in weights]
    expected = 1.0 / (1.0 + math.exp(-sum(margins) / len(margins)))
    assert model.probability(QUESTION) == pytest.approx(expected)
    assert model.margin(QUESTION) == pytest.approx(margins[-1])
    other = model.copy()
    other.update({0: 1.0}, True)
    assert model.probability(QUESTION) == pytest.approx(expected)


def test_the_gradient_of_the_squared_hinge():
    for x, positive in STEPS:
        model, y, tiny = Hinge(1.0, 0.01, weights={0: 0.2, 1: -0.1, 2: 0.3}), 1 if positive else -1, 1e-6

        def loss(weights, x=x, y=y):
            return max(0.0, 1.0 - y * sum(weights[feature] * value for feature, value in x.items())) ** 2

        before = dict(model.weights)
        model.update(x, positive)
        for feature in x:
            slope = (loss({**before, feature: before[feature] + tiny}) - loss(before)) / tiny
            assert model.sums[feature] == pytest.approx(slope**2, rel=1e-4)
            expected = before[feature] - slope / math.sqrt(slope**2 + 0.01)
            assert model.weights[feature] == pytest.approx(expected, rel=1e-4)
    assert Hinge(1.0, 0.01, weights={0: 2.0}).probability({0: 1.0}) == 1.0
