"""The gauges of a service over time, for its page: a fixed number of samples, further apart as the service ages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

WATCHED = (
    "drift_precision_at_1",
    "drift_new_label_rate",
    "drift_examples",
    "labels",
    "examples_learned",
    "queue_length",
    "suggest_p50_seconds",
    "suggest_p99_seconds",
)
FIRST_SECONDS = 5.0
_MOST = 720


class History:
    """Samples of gauges. When there are ``most``, every second one goes, and the time between samples doubles.

    >>> seconds = iter(range(9))
    >>> history = History(every=1, most=4, clock=lambda: float(next(seconds)))
    >>> for _ in range(9):
    ...     history.note({"labels": 7.0})
    >>> history.seconds, history.every
    ([0.0, 4.0, 8.0], 4.0)
    """

    def __init__(
        self, *, every: float = FIRST_SECONDS, most: int = _MOST, clock: Callable[[], float] = time.time
    ) -> None:
        self.every, self._most, self._clock = float(every), most, clock
        self.seconds: list[float] = []
        self._samples: list[tuple[float, ...]] = []

    def note(self, gauges: Mapping[str, float]) -> None:
        """Take a sample, unless the last one is too recent."""
        now = self._clock()
        if self.seconds and 0 <= now - self.seconds[-1] < self.every:
            return
        if len(self.seconds) == self._most:
            self.seconds, self._samples, self.every = self.seconds[::2], self._samples[::2], 2 * self.every
            if now - self.seconds[-1] < self.every:
                return
        self.seconds.append(now)
        self._samples.append(tuple(gauges.get(name, 0.0) for name in WATCHED))

    def values(self) -> dict[str, list[float]]:
        """The samples of each gauge."""
        return {name: [sample[place] for sample in self._samples] for place, name in enumerate(WATCHED)}
