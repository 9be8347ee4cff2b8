"""LivingTree in plain Python: which rows its store keeps, and how two lists become one answer."""

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


def stored(sizes: list[int], *, n_recent: int, held: int | None, **bounds) -> list[int]:
    """The recent rows, what the bounds keep of the others, and what they kept when a refit began."""
    found = recent(len(sizes), n_recent) | set(kept(sizes, leaving_out=recent(len(sizes), n_recent), **bounds))
    if held is not None:
        found |= recent(held, n_recent) | set(kept(sizes[:held], leaving_out=recent(held, n_recent), **bounds))
    return sorted(found)


def recent(seen: int, n_recent: int) -> set[int]:
    """One row in eight of the last ``8 * n_recent`` rows."""
    return {position for position in range(max(0, seen - 8 * n_recent), seen) if position % 8 == 0}


def mixed(
    batch: dict[int, float], online: dict[int, float], share: dict[int, float], weight, temperature, newness, boost
) -> dict[int, float]:
    """The score of each label that either model lists."""
    scores = {}
    for label in batch.keys() | online.keys():
        part = share.get(label, 0.0)
        if part > 0:
            w = weight * part**newness
            from_batch = batch[label] ** (1 / temperature) if label in batch else 0.0
            scores[label] = w * from_batch + (1 - w) * online.get(label, 0.0)
        else:
            scores[label] = min(1.0, boost * online.get(label, 0.0))
    return scores
