"""Twin of online/tree.hpp and the files it includes: OPLT and IPLT, Algorithms 1 to 8.

"Online probabilistic label trees" (Jasinska-Kobus, Wydmuch, Thiruvenkatachari and Dembczyński, 2021). The
paper's symbols:

    T      the tree                        r_T       its root
    L_T    its leaves                      L_v       the leaves below node v
    Ch(v)  the children of v               pa(v)     the parent of v
    eta(v) the classifier of v             theta(v)  its auxiliary classifier
    b      ``arity``                       b_max     ``max_leaf``

An example is a dict from feature to value and a set of labels. The weights of a classifier are a dict, so
features and labels need not be known in advance. ``BIAS`` is the key of the constant feature.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .rng import Rng

BIAS = -1

Features = Mapping[int, float]


@dataclass
class Classifier:
    """Online logistic regression with AdaGrad: weights and sums of squared gradients by feature."""

    rate: float
    inside: float
    outside: float = 0.0
    weights: dict[int, float] = field(default_factory=dict)
    sums: dict[int, float] = field(default_factory=dict)
    sign: int = 1
    updates: int = 0

    def margin(self, x: Features) -> float:
        """The score before the logistic function."""
        return self.sign * sum(self.weights.get(feature, 0.0) * value for feature, value in x.items())

    def probability(self, x: Features) -> float:
        """The estimated probability for x."""
        return 1.0 / (1.0 + math.exp(-self.margin(x)))

    def update(self, x: Features, positive: bool) -> None:
        """A_online.Update: one step of AdaGrad on the logistic loss.

        With y = +1 or -1, the gradient by the margin z is -y / (1 + exp(y z)); it changes sign exactly with y
        and z.
        """
        y = 1 if positive else -1
        gradient = -y / (1.0 + math.exp(y * self.margin(x))) * self.sign
        for feature, value in x.items():
            step = gradient * value
            self.sums[feature] = self.sums.get(feature, 0.0) + step * step
            change = self.rate * step / (math.sqrt(self.sums[feature] + self.inside) + self.outside)
            self.weights[feature] = self.weights.get(feature, 0.0) - change
        self.updates += 1

    def copy(self) -> Classifier:
        """Copy the classifier, as Algorithm 5 does."""
        return replace(self, weights=dict(self.weights), sums=dict(self.sums), updates=0)

    def inverse(self) -> Classifier:
        """InverseClassifier of Algorithm 6: a copy with the sign of predictions and updates flipped."""
        return replace(self.copy(), sign=-self.sign)

    def plain(self) -> dict[int, float]:
        """The weights multiplied by the sign."""
        return {feature: self.sign * weight for feature, weight in self.weights.items()}


@dataclass
class Node:
    """A node: its parent, children, label, eta and, while the policy may still extend it, theta."""

    number: int
    eta: Classifier
    theta: Classifier | None = None
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    label: int | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no children."""
        return not self.children

    def leaf_children(self) -> list[Node]:
        """The children that are leaves."""
        return [child for child in self.children if child.is_leaf]

    def n_leaves(self) -> int:
        """|L_v|."""
        return 1 if self.is_leaf else sum(child.n_leaves() for child in self.children)


@dataclass
class OnlineTree:
    """OPLT: a tree over the labels seen so far, with its classifiers."""

    policy: str = "best-greedy"
    arity: int = 2
    max_leaf: int = 100
    alpha: float = 0.75
    printed_balance: bool = False
    rate: float = 1.0
    epsilon: float = 0.01
    epsilon_outside: bool = False
    bias: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """OPLT.Init, Algorithm 2."""
        self.nodes: list[Node] = []
        self.leaf_of: dict[int, Node] = {}
        self.root = self._new_node(self._new_classifier())
        self.root.theta = self._new_classifier()
        self._decisions = 0
        self._cursor = 0
        self._growing = True

    def train(self, stream: Iterable[tuple[Features, Iterable[int]]]) -> OnlineTree:
        """OPLT.Train, Algorithm 3; IPLT.Train, Algorithm 1, on a planted tree that does not grow."""
        for features, labels in stream:
            x = {BIAS: self.bias, **features} if self.bias else dict(features)
            ordered = sorted(set(labels))
            if any(label not in self.leaf_of for label in ordered):
                self._update_tree(x, ordered)
            self._update_classifiers(x, ordered)
        return self

    def plant(self, parents: list[int], labels: list[int], *, growing: bool) -> OnlineTree:
        """Start from a given tree (root 0, parent -1; label -1 for inner nodes) with new classifiers."""
        self.nodes = []
        for label in labels:
            node = self._new_node(self._new_classifier())
            if label >= 0:
                node.label = label
                self.leaf_of[label] = node
        for node, parent in zip(self.nodes, parents, strict=True):
            if parent >= 0:
                node.parent = self.nodes[parent]
                self.nodes[parent].children.append(node)
        self.root = self.nodes[0]
        self._growing = growing
        for node in self.nodes:
            node.theta = self._new_classifier() if growing and self._may_extend(node) else None
        return self

    def topk(self, features: Features, k: int) -> list[tuple[int, float]]:
        """The k labels of highest probability by uniform-cost search."""
        x = {BIAS: self.bias, **features} if self.bias else dict(features)
        queue = [(-self.root.eta.probability(x), self.root.label is not None, self.root.number)]
        found: list[tuple[int, float]] = []
        while queue and len(found) < k and self.leaf_of:
            negative, _, number = heapq.heappop(queue)
            node = self.nodes[number]
            if node.is_leaf and node.label is not None:
                found.append((node.label, -negative))
            for child in node.children:
                probability = -negative * child.eta.probability(x)
                heapq.heappush(queue, (-probability, child.is_leaf, child.number))
        return found

    def _update_tree(self, x: Features, labels: list[int]) -> None:
        """OPLT.UpdateTree, Algorithm 4."""
        selected: Node | None = None
        for label in labels:
            if label in self.leaf_of:
                continue
            if not self.leaf_of:
                self._set_label(self.root, label)
                continue
            selected = self._select(x, selected)
            if self._inserts(selected):
                self._insert_node(selected)
            self._add_leaf(label, selected)

    def _insert_node(self, v: Node) -> None:
        """OPLT.InsertNode, Algorithm 5."""
        assert v.theta is not None
        inserted = self._new_node(v.theta.copy())
        if v.is_leaf:
            assert v.label is not None
            self._set_label(inserted, v.label)
            v.label = None
        else:
            inserted.children = v.children
            for child in inserted.children:
                child.parent = inserted
        v.children, inserted.parent = [inserted], v
        inserted.theta = v.theta.copy()

    def _add_leaf(self, label: int, v: Node) -> None:
        """OPLT.AddLeaf, Algorithm 6; also removes the auxiliary classifiers that the policy cannot use."""
        assert v.theta is not None
        leaf = self._new_node(v.theta.inverse())
        leaf.parent = v
        v.children.append(leaf)
        self._set_label(leaf, label)
        leaf.theta = self._new_classifier()
        for node in (v, *v.children):
            if not self._may_extend(node):
                node.theta = None

    def _update_classifiers(self, x: Features, labels: list[int]) -> None:
        """OPLT.UpdateClassifiers, Algorithm 7."""
        positive, negative = self._assign_to_nodes(labels)
        for v in positive:
            v.eta.update(x, True)
            if v.theta is not None:
                v.theta.update(x, True)
        for v in negative:
            v.eta.update(x, False)

    def _assign_to_nodes(self, labels: list[int]) -> tuple[list[Node], list[Node]]:
        """AssignToNodes: the positive and the negative nodes of an example.

        Positive nodes are the leaves of the labels and their ancestors; negative nodes are the other children
        of positive nodes. Without labels the root is the only negative node.
        """
        positive: dict[int, Node] = {}
        for label in labels:
            v: Node | None = self.leaf_of.get(label)
            while v is not None:
                positive[v.number] = v
                v = v.parent
        if not positive:
            return [], [self.root]
        negative = [child for v in positive.values() for child in v.children if child.number not in positive]
        return list(positive.values()), negative

    def _select(self, x: Features, previous: Node | None) -> Node:
        """Algorithm 8, lines 1 to 9, and the policies of a complete and of a flat tree."""
        if self.policy == "flat":
            return self.root
        if self.policy == "complete":
            while len(self.nodes[self._cursor].children) >= self.arity:
                self._cursor += 1
            return self.nodes[self._cursor]
        if previous is None:
            v = self.root
            random = Rng(self.seed, self._decisions)
            self._decisions += 1
            while len(v.leaf_children()) < len(v.children) and len(v.children) >= self.arity:
                if self.policy == "random":
                    v = v.children[random.below(len(v.children))]
                else:
                    v = max(v.children, key=lambda child: self._score(x, child))
        else:
            v = previous
        return v.leaf_children()[0] if len(v.leaf_children()) == 1 else v

    def _score(self, x: Features, v: Node) -> float:
        """The Best-Greedy score: the printed balance term, or log(|L_pa(v)| / (|Ch(pa(v))| |L_v|))."""
        assert v.parent is not None
        even = v.parent.n_leaves() / len(v.parent.children)
        balance = math.log(even) / v.n_leaves() if self.printed_balance else math.log(even / v.n_leaves())
        return (1.0 - self.alpha) * v.eta.probability(x) + self.alpha * balance

    def _inserts(self, v: Node) -> bool:
        """Algorithm 8, line 10."""
        bounded = self.policy in ("best-greedy", "random")
        return v.is_leaf or (bounded and len(v.children) >= self.max_leaf)

    def _may_extend(self, v: Node) -> bool:
        """True if the policy may still choose this node."""
        if self.policy == "complete":
            return len(v.children) < self.arity
        if self.policy == "flat":
            return v is self.root
        if not v.is_leaf:
            return len(v.leaf_children()) == len(v.children) or len(v.children) < self.arity
        if v.parent is None:
            return True
        among_leaves = len(v.parent.leaf_children()) == len(v.parent.children)
        return not among_leaves or len(v.parent.children) == 1

    def _new_classifier(self) -> Classifier:
        return Classifier(self.rate, *((0.0, self.epsilon) if self.epsilon_outside else (self.epsilon, 0.0)))

    def _new_node(self, eta: Classifier) -> Node:
        node = Node(len(self.nodes), eta)
        self.nodes.append(node)
        return node

    def _set_label(self, node: Node, label: int) -> None:
        node.label = label
        self.leaf_of[label] = node


def iplt_train(tree: OnlineTree, stream: Iterable[tuple[Features, Iterable[int]]]) -> OnlineTree:
    """IPLT.Train, Algorithm 1: train new classifiers on the nodes of ``tree``."""
    fresh = replace(tree)
    parents = [-1 if node.parent is None else node.parent.number for node in tree.nodes]
    labels = [-1 if node.label is None else node.label for node in tree.nodes]
    return fresh.plant(parents, labels, growing=False).train(stream)
