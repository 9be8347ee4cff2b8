"""Suggestions rolled up a hierarchy: where the children are uncertain, their parent is suggested.

A label that scores at least the threshold is kept. The others are joined below their parents, level by level: a parent
scores the probability that at least one of the uncertain labels below it is right, 1 - (1 - s1)(1 - s2)..., and is
suggested once this reaches the threshold. Ancestors of a kept label are not suggested: the label implies them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import prod

_MOST_LEVELS = 50  # a hierarchy with a cycle would have no end

Suggestion = tuple[Hashable, float]
Parents = Callable[[Hashable], Iterable[Hashable]]


def roll_up(row: Sequence[Suggestion], parents: Parents, threshold: float) -> list[Suggestion]:
    """The labels of a row that are certain, and the parents of those that are not, best first.

    >>> parents = {"cat": ["pet"], "dog": ["pet"], "pet": ["animal"], "oak": ["tree"]}
    >>> roll_up([("cat", 0.4), ("dog", 0.35), ("oak", 0.2)], lambda one: parents.get(one, []), 0.6)
    [('pet', 0.61)]
    """
    kept = {label: score for label, score in row if score >= threshold}
    implied: set[Hashable] = set()
    for label in kept:
        implied |= _above(label, parents)
    chance = {label: score for label, score in row if score < threshold}
    below: dict[Hashable, frozenset[Hashable]] = {label: frozenset([label]) for label in chance}  # uncertain labels
    level = list(below)
    for _ in range(_MOST_LEVELS):
        joined: dict[Hashable, frozenset[Hashable]] = {}
        for node in level:
            for parent in parents(node):
                joined[parent] = joined.get(parent, below.get(parent, frozenset())) | below[node]
        level = []
        for parent, members in joined.items():
            if parent in implied or parent in kept or members == below.get(parent):
                continue
            below[parent] = members
            score = 1 - prod(1 - chance[label] for label in members)
            if score >= threshold:
                kept[parent] = round(score, 9)
                implied |= _above(parent, parents)
            else:
                level.append(parent)
        if not level:
            break
    return sorted(kept.items(), key=lambda pair: -pair[1])


def _above(label: Hashable, parents: Parents) -> set[Hashable]:
    """All ancestors of a label."""
    found: set[Hashable] = set()
    waiting = [label]
    while waiting:
        fresh = [one for one in parents(waiting.pop()) if one not in found]
        found.update(fresh)
        waiting += fresh
    return found - {label}
