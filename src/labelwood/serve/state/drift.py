"""Drift: the quality of predictions and the rate of new labels over the last examples."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from labelwood.errors import FormatError


class Drift:
    """Progressive P@1 and new labels over the last ``window`` examples.

    Progressive: every example is predicted before it is learned. Examples without labels are not counted.
    """

    def __init__(self, window: int) -> None:
        self._hits: deque[bool] = deque(maxlen=window)
        self._new: deque[int] = deque(maxlen=window)

    def note(self, hits: Iterable[bool], new_labels: Iterable[int]) -> None:
        """Add examples: whether the best label was right, and the number of new labels of each example."""
        self._hits.extend(hits)
        self._new.extend(new_labels)

    @property
    def window(self) -> int:
        """The largest number of examples that the figures cover."""
        return self._hits.maxlen or 0

    @property
    def examples(self) -> int:
        """The number of examples that the figures cover."""
        return len(self._hits)

    @property
    def precision(self) -> float | None:
        """Progressive P@1; None before the first example."""
        return sum(self._hits) / len(self._hits) if self._hits else None

    @property
    def new_label_rate(self) -> float | None:
        """New labels per example."""
        return sum(self._new) / len(self._new) if self._new else None

    def alarm(self, threshold: float) -> bool:
        """True if the window is full and P@1 is below the threshold."""
        return len(self._hits) == self._hits.maxlen and (self.precision or 0.0) < threshold

    def state(self) -> dict[str, Any]:
        """The state as JSON values."""
        return {"hits": "".join("01"[hit] for hit in self._hits), "new": list(self._new)}

    @classmethod
    def restore(cls, saved: Mapping[str, Any], window: int) -> Drift:
        """The inverse of :meth:`state`; a smaller window keeps the last examples."""
        hits, new = saved.get("hits"), saved.get("new")
        if not isinstance(hits, str) or not isinstance(new, list) or len(hits) != len(new):
            raise FormatError("the drift of a snapshot is damaged")
        drift = cls(window)
        drift.note((hit == "1" for hit in hits), map(int, new))
        return drift
