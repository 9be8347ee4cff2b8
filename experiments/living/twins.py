"""Other classifiers in the nodes of an online tree, tried in its twin: averaged weights, and the squared hinge.

The twin (``tests/reference/online_tree.py``) is plain Python: about ten milliseconds a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from experiments.common import KS
from labelwood import OnlineTree
from labelwood.sparse import CSR, I32
from tests.reference.online_tree import Classifier, Features
from tests.reference.online_tree import OnlineTree as Twin


@dataclass
class Averaged(Classifier):
    """Predicts with the average of the weights after each of its updates, and learns as before.

    ``late`` has, for each feature, the sum of its changes, each times the number of updates before it.
    """

    late: dict[int, float] = field(default_factory=dict)
    seen: int = 0

    def probability(self, x: Features) -> float:
        """The estimated probability for x."""
        late = sum(self.late.get(feature, 0.0) * value for feature, value in x.items())
        return _logistic(self.margin(x) - self.sign * late / max(self.seen, 1))

    def update(self, x: Features, positive: bool) -> None:
        """One step; the average follows."""
        before = {feature: self.weights.get(feature, 0.0) for feature in x}
        super().update(x, positive)
        for feature, weight in before.items():
            self.late[feature] = self.late.get(feature, 0.0) + self.seen * (self.weights[feature] - weight)
        self.seen += 1

    def copy(self) -> Averaged:
        """A copy with an average of its own."""
        made = super().copy()
        assert isinstance(made, Averaged)
        return replace(made, late=dict(self.late))


@dataclass
class Hinge(Classifier):
    """The squared hinge instead of the logistic loss; exp(-max(0, 1 - margin)^2) as the probability."""

    def probability(self, x: Features) -> float:
        """The estimated probability for x."""
        return math.exp(-(max(0.0, 1.0 - self.margin(x)) ** 2))

    def update(self, x: Features, positive: bool) -> None:
        """A step of AdaGrad on the squared hinge."""
        y = 1 if positive else -1
        gradient = -2.0 * y * max(0.0, 1.0 - y * self.margin(x)) * self.sign
        for feature, value in x.items():
            step = gradient * value
            self.sums[feature] = self.sums.get(feature, 0.0) + step * step
            change = self.rate * step / math.sqrt(self.sums[feature] + self.inside)
            self.weights[feature] = self.weights.get(feature, 0.0) - change
        self.updates += 1


def _logistic(margin: float) -> float:
    return 1.0 / (1.0 + math.exp(-margin))


@dataclass
class OtherTree(Twin):
    """The twin with another kind of classifier."""

    kind: type[Classifier] = Classifier

    def _new_classifier(self) -> Classifier:
        return self.kind(self.rate, self.epsilon)


def answers_of(kind: type[Classifier], X: CSR, Y: CSR, first: int, *, rate: float = 1.0) -> I32:
    """The best labels of the rows from ``first`` on, each before it is learned; ``rate`` times the default rate."""
    own = OnlineTree()
    tree = OtherTree(
        own.policy, own.arity, own.max_leaf, own.alpha, rate=rate * own.learning_rate, epsilon=own.epsilon,
        bias=own.bias, kind=kind,
    )  # fmt: skip
    found = np.full((X.n_rows - first, max(KS)), -1, np.int32)
    for row, (features, labels) in enumerate(_examples(X.unit_rows(), Y)):
        if row >= first:
            best = [label for label, _ in tree.topk(features, max(KS))]
            found[row - first, : len(best)] = best
        tree.train([(features, labels)])
    return found


def _examples(X: CSR, Y: CSR) -> Iterator[tuple[dict[int, float], list[int]]]:
    for row in range(X.n_rows):
        one, its = X.rows(row, row + 1), Y.rows(row, row + 1)
        yield dict(zip(one.indices.tolist(), one.data.tolist(), strict=True)), its.indices.tolist()
