"""Mixing several top-k lists into one: weighted sums of tempered scores, and the search for weights.

A member with score ``s`` for a label adds ``weight * s ** (1 / temperature)``: a high temperature evens its scores out,
a low temperature trusts only its best labels. By rank, ``s`` is ``1 / place``. A label that a member does not list adds
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from labelwood.packed.label_tree import average
from labelwood.sparse import F64, TopK

_FACTORS = (0.4, 0.7, 0.87, 1.15, 1.4, 2.5)
_FEWEST_WEIGHT = 0.02  # a member is dropped on trial only if the others weigh more than this
_ROUNDS = 6


@dataclass(frozen=True)
class Mix:
    """How lists are mixed: ``weights`` that sum to 1, ``temperatures``, by rank or by score."""

    weights: tuple[float, ...]
    temperatures: tuple[float, ...]
    by_rank: bool = False

    def amounts(self, lists: Sequence[TopK]) -> list[TopK]:
        """Each member's list, with the amounts that it adds in place of its scores."""
        return [
            TopK(top.labels, (weight * self._tempered(top, temperature)).astype(np.float32))
            for top, weight, temperature in zip(lists, self.weights, self.temperatures, strict=True)
        ]

    def combine(self, lists: Sequence[TopK], k: int) -> TopK:
        """The best k labels of each row by the sum of the members' amounts."""
        scaled = [TopK(top.labels, top.scores * np.float32(len(lists))) for top in self.amounts(lists)]
        return average(scaled, k)

    def _tempered(self, top: TopK, temperature: float) -> F64:
        known = top.labels >= 0
        if self.by_rank:
            places = np.broadcast_to(1 / np.arange(1, top.labels.shape[1] + 1), top.labels.shape)
            return np.where(known, places, 0.0) ** (1 / temperature)
        return np.where(known, np.clip(top.scores.astype(np.float64), 0, 1), 0.0) ** (1 / temperature)


def even(n_members: int, *, by_rank: bool = False) -> Mix:
    """The mix in which all members weigh the same."""
    return Mix((1 / n_members,) * n_members, (1.0,) * n_members, by_rank)


def search_mix(
    lists: Sequence[TopK], quality: Callable[[TopK], float], k: int, *, by_rank: bool, fixed: Sequence[float] | None
) -> tuple[Mix, float]:
    """The best weights and temperatures found by coordinate search, and their quality.

    The search starts from equal weights, or from one member with nine tenths of the weight, whichever is better.
    ``fixed`` weights are not changed.
    """
    n_members = len(lists)
    judged: dict[Mix, float] = {}

    def value(mix: Mix) -> float:
        if mix not in judged:
            judged[mix] = quality(mix.combine(lists, k))
        return judged[mix]

    ones = (1.0,) * n_members
    if fixed is not None:
        starts = [Mix(_normal(fixed), ones, by_rank)]
    else:
        alone = np.full((n_members, n_members), 0.1 / max(n_members - 1, 1)) + 0.9 * np.eye(n_members)
        starts = [even(n_members, by_rank=by_rank)]
        starts += [Mix(_normal(row.tolist()), ones, by_rank) for row in alone if n_members > 1]
    mix = max(starts, key=value)
    for _ in range(_ROUNDS):
        before = mix
        for member in range(n_members):
            mix = max([mix, *_neighbours(mix, member, weights_too=fixed is None)], key=value)
        if mix == before:
            break
    return mix, value(mix)


def _neighbours(mix: Mix, member: int, *, weights_too: bool) -> list[Mix]:
    found = []
    for factor in _FACTORS:
        changed = list(mix.temperatures)
        changed[member] = float(np.clip(changed[member] * factor, 0.05, 20))
        found.append(Mix(mix.weights, tuple(changed), mix.by_rank))
        if weights_too and len(mix.weights) > 1:
            weights = list(mix.weights)
            weights[member] *= factor
            found.append(Mix(_normal(weights), mix.temperatures, mix.by_rank))
    rest = sum(mix.weights) - mix.weights[member]
    if weights_too and rest > _FEWEST_WEIGHT:
        without = [0.0 if i == member else weight for i, weight in enumerate(mix.weights)]
        found.append(Mix(_normal(without), mix.temperatures, mix.by_rank))
    return found


def _normal(weights: Sequence[float]) -> tuple[float, ...]:
    total = sum(weights)
    return tuple(weight / total for weight in weights)
