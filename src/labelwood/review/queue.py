"""Which document comes next: by doubt, by order or at random, and not one that somebody else has open."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Literal, get_args

import numpy as np

from labelwood.review.documents import Documents
from labelwood.review.sitting import Sitting
from labelwood.scoring.doubt import doubtful_first
from labelwood.sparse import F32, I64

Order = Literal["doubt", "order", "random"]
ORDERS: tuple[Order, ...] = get_args(Order)

_LEASE_SECONDS = 1800.0  # after the last request of a person


class Queue:
    """Hands documents out. A document that a person has open is not handed to another one for half an hour."""

    def __init__(self, documents: Documents, sitting: Sitting, doubts: Callable[[], F32], *, seed: int = 0) -> None:
        self._documents, self._sitting, self._doubts, self._seed = documents, sitting, doubts, seed
        self._orders: dict[Order, Sequence[int]] = {}
        self._open: dict[str, tuple[str, float]] = {}  # by person: the document, and when
        self._skipped: dict[str, set[str]] = {}  # by person
        self._handing, self._ordering = Lock(), Lock()

    def prepare(self, order: Order) -> None:
        """Bring the documents into an order; by doubt, the more doubtful half first."""
        with self._ordering:
            if order in self._orders:
                return
            rows: I64 = np.arange(len(self._documents))
            if order == "random":
                rows = np.random.default_rng(self._seed).permutation(len(rows))
            elif order == "doubt":
                rows = doubtful_first(self._doubts(), seed=self._seed)
            self._orders[order] = rows.tolist()

    def next(self, who: str, order: Order) -> str | None:
        """The next document for a person, who has it open then; None if nothing is left.

        It is the document that the person has open, while it is not done.
        """
        self.prepare(order)  # before the lock: the doubts of many documents take long
        with self._handing:
            return self._next(who, order)

    def take(self, who: str, document: str) -> str:
        """Note that a person has a document open."""
        with self._handing:
            return self._take(who, document)

    def skip(self, who: str, document: str) -> None:
        """Hand a document to this person again only when no other is left."""
        with self._handing:
            self._skipped.setdefault(who, set()).add(document)

    def people(self) -> list[str]:
        """The people at work."""
        with self._handing:
            return sorted(self._leases())

    def _next(self, who: str, order: Order) -> str | None:
        mine = self._open.get(who)
        if mine is not None and self._is_left(mine[0]) and mine[0] not in self._skipped.get(who, ()):
            return self._take(who, mine[0])
        taken = {document for other, document in self._leases().items() if other != who}
        found = self._first(order, taken | self._skipped.get(who, set()))
        if found is None:  # what was skipped comes again, but not at once
            self._skipped.pop(who, None)
            found = self._first(order, taken | ({mine[0]} if mine else set())) or self._first(order, taken)
        if found is None:
            self._open.pop(who, None)
            return None
        return self._take(who, found)

    def _first(self, order: Order, without: set[str]) -> str | None:
        listed = (self._documents.ids[row] for row in self._orders[order])
        return next((document for document in listed if document not in without and self._is_left(document)), None)

    def _take(self, who: str, document: str) -> str:
        self._open[who] = (document, time.monotonic())
        return document

    def _leases(self) -> dict[str, str]:
        """The document of each person at work; forgets those who are gone."""
        since = time.monotonic() - _LEASE_SECONDS
        for who in [who for who, (_, at) in self._open.items() if at < since]:
            del self._open[who]
            self._skipped.pop(who, None)
        return {who: document for who, (document, _) in self._open.items()}

    def _is_left(self, document: str) -> bool:
        return not self._sitting.is_done(document)
