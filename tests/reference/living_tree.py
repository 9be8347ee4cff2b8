"""LivingTree in plain Python: which rows its store keeps, the votes of rows, and how three lists become one answer."""

from __future__ import annotations

import math

MASK = 2**64 - 1


def splitmix(number: int, seed: int) -> int:
    mixed = ((number + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return mixed ^ (mixed >> 31)


def rank(position: int, *, keep: str, seed: int, half_life: int | None) -> float:
    """Smaller is kept first."""
    if keep == "window":
        return -position
    uniform = ((splitmix(position, seed) >> 11) + 0.5) * 2.0**-53
    arrival = math.log(-math.log(uniform))
    return arrival if half_life is None else arrival - position * (math.log(2.0) / half_life)


def kept(
    sizes: list[int], *, keep: str, max_rows=None, max_bytes=None, half_life=None, seed=0, leaving_out=frozenset()
) -> list[int]:
    """The positions to keep of rows 0, 1, ... of these sizes: the first by rank, as long as they fit."""
    positions = [position for position in range(len(sizes)) if position not in leaving_out]
    order = sorted(positions, key=lambda p: rank(p, keep=keep, seed=seed, half_life=half_life))
    chosen: list[int] = []
    total = 0
    for position in order:
        total += sizes[position]
        if (max_rows is not None and len(chosen) >= max_rows) or (max_bytes is not None and total > max_bytes):
            break
        chosen.append(position)
    return sorted(chosen)


def stored(sizes: list[int], *, n_recent: int, **bounds) -> list[int]:
    """The recent rows, and what the bounds keep of the others."""
    own = recent(len(sizes), n_recent)
    return sorted(own | set(kept(sizes, leaving_out=own, **bounds)))


def recent(seen: int, n_recent: int) -> set[int]:
    """One row in eight of the last ``8 * n_recent`` rows."""
    return {position for position in range(max(0, seen - 8 * n_recent), seen) if position % 8 == 0}


def nearest(rows: list[dict[int, float]], query: dict[int, float], *, max_visits: int) -> list[tuple[float, int]]:
    """The cosines of the rows that share a compared feature with the query, nearest first, newer ones before equals."""
    rows, (query,) = [_unit(row) for row in rows], [_unit(query)]
    lengths: list[float] = []
    for number, row in enumerate(rows):  # by the features of the rows before
        lengths.append(_weighted_length(row, rows[:number]))
        if number + 1 in {2**power for power in range(32)}:
            lengths = [_weighted_length(one, rows[: number + 1]) for one in rows[: number + 1]]
    compared, left = [], max_visits
    for count, feature in sorted((sum(feature in row for row in rows), feature) for feature in query):
        if count > left:
            break
        compared, left = [*compared, feature], left - count
    length = _weighted_length(query, rows)
    near = []
    for number, row in enumerate(rows):
        dot = sum(_idf(rows, feature) ** 2 * query[feature] * row[feature] for feature in compared if feature in row)
        if dot > 0:
            near.append((dot / (length * lengths[number]), number))
    return sorted(near, reverse=True)


def votes(near: list[tuple[float, int]], labels: list[list[int]]) -> dict[int, float]:
    """The share of each label in the votes of rows."""
    found: dict[int, float] = {}
    for cosine, number in near:
        for label in labels[number]:
            found[label] = found.get(label, 0.0) + cosine**4
    return {label: value / sum(cosine**4 for cosine, _ in near) for label, value in found.items()}


def _idf(rows: list[dict[int, float]], feature: int) -> float:
    return math.log((len(rows) + 2) / (sum(feature in row for row in rows) + 1))


def _weighted_length(row: dict[int, float], known: list[dict[int, float]]) -> float:
    return _length({feature: value * _idf(known, feature) for feature, value in row.items()})


def _length(row: dict[int, float]) -> float:
    return math.sqrt(sum(value * value for value in row.values()))


def _unit(row: dict[int, float]) -> dict[int, float]:
    return {feature: value / _length(row) for feature, value in row.items()}


def mixed(
    batch: dict[int, float], online: dict[int, float], nearest: dict[int, float], share: dict[int, float],
    weight, temperature, newness, boost, nearness,
) -> dict[int, float]:  # fmt: skip
    """The score of each label that one of the parts lists."""
    scores = {}
    for label in batch.keys() | online.keys() | nearest.keys():
        part = share.get(label, 0.0)
        if part > 0:
            w = weight * part**newness
            from_batch = batch[label] ** (1 / temperature) if label in batch else 0.0
            scores[label] = w * from_batch + (1 - w) * online.get(label, 0.0)
        else:
            scores[label] = min(1.0, boost * online.get(label, 0.0))
        scores[label] = (1 - nearness) * scores[label] + nearness * nearest.get(label, 0.0)
    return scores
