"""Twin of base/rng.hpp: splitmix64 random numbers, one stream per (seed, purpose)."""

from __future__ import annotations

from typing import Any

_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


def mix64(x: int) -> int:
    """One round of splitmix64."""
    x = (x + _STEP) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Rng:
    """A stream of random numbers that depends only on ``seed`` and ``stream``."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        self._state = mix64((seed ^ mix64(stream)) & _MASK)

    def next(self) -> int:
        """64 random bits."""
        self._state = (self._state + _STEP) & _MASK
        return mix64(self._state)

    def below(self, bound: int) -> int:
        """Uniform on [0, bound)."""
        return ((self.next() >> 32) * bound) >> 32

    def uniform(self) -> float:
        """Uniform on [0, 1)."""
        return (self.next() >> 11) * 2.0**-53

    def shuffle(self, items: Any) -> None:
        """Shuffle in place (Fisher and Yates, from the end)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
