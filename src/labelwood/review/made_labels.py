"""The labels that people make while they review, where no vocabulary says which labels there are."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from labelwood.review.labels import KnownLabels, ShownLabel
from labelwood.vocabulary.name_search import NameSearch


class MadeLabels:
    """The labels in use that were not known before; a label that no document has any more is none of them.

    ``in_use`` may grow and shrink.
    """

    def __init__(self, known: KnownLabels, in_use: Collection[str]) -> None:
        self._known, self._in_use = known, in_use
        self._search: tuple[list[str], NameSearch] = ([], NameSearch([], np.zeros(0, np.int32)))

    def all(self) -> list[str]:
        """The labels, in the order in which they came into use."""
        if self._known.is_closed:
            return []
        return [label for label in list(self._in_use) if not self._known.knows(label)]

    def find(self, query: str, limit: int) -> list[ShownLabel]:
        """The labels whose words begin as typed."""
        labels, (indexed, search) = self.all(), self._search
        if labels != indexed:
            search = NameSearch(labels, np.arange(len(labels), dtype=np.int32))
            self._search = (labels, search)
        return [self._known.shown(labels[number]) for number in search.find(query, limit)]
