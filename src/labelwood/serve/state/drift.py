"""Drift: how well each example was predicted before it was learned, and how often labels are new, of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from labelwood.errors import FormatError


class Drift:
    """Progressive P@1 and new labels over the last ``window`` examples.

    An example without labels counts for neither.
    """

    def __init__(self, window: int) -> None:
        self._hits: deque[bool] = deque(maxlen=window)
        self._new: deque[int] = deque(maxlen=window)

    def note(self, hits: Iterable[bool], new_labels: Iterable[int]) -> None:
        """Add examples: whether the best prediction was right, and how many labels were never seen before."""
        self._hits.extend(hits)
        self._new.extend(new_labels)

    @property
    def window(self) -> int:
        """How many examples the figures are over at the most."""
        return self._hits.maxlen or 0

    @property
    def examples(self) -> int:
        """How many examples the figures are over."""
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
        """Whether P@1 is below the threshold, the window being full."""
        return len(self._hits) == self._hits.maxlen and (self.precision or 0.0) < threshold

    def state(self) -> dict[str, Any]:
        """What to save."""
        return {"hits": "".join("01"[hit] for hit in self._hits), "new": list(self._new)}

    @classmethod
    def restore(cls, saved: Mapping[str, Any], window: int) -> Drift:
        """The inverse of :meth:`state`; a smaller window keeps the latest."""
        hits, new = saved.get("hits"), saved.get("new")
        if not isinstance(hits, str) or not isinstance(new, list) or len(hits) != len(new):
            raise FormatError("the drift of a snapshot is damaged")
        drift = cls(window)
        drift.note((hit == "1" for hit in hits), map(int, new))
        return drift
