"""Progress at a glance: what is done, by whom, and how far people and suggestions agree over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from labelwood.review.sitting import Reviewed

_POINTS = 24  # of the curve


@dataclass(frozen=True)
class Point:
    """The agreement over some documents: ``first`` is the share whose first suggestion was right.

    ``found`` is the share of the given labels that had been suggested.
    """

    documents: int
    first: float
    found: float


@dataclass(frozen=True)
class Progress:
    """Counts over the documents that are done, and the agreement over time."""

    documents: int
    done: int
    accepted: int
    rejected: int
    added: int
    unchanged: int
    by_person: dict[str, int]
    agreement: list[Point]


def progress_of(n_documents: int, done: Iterable[Reviewed]) -> Progress:
    """The progress of a sitting.

    ``accepted`` and ``rejected`` are suggestions, ``added`` are labels that were not suggested. A document is
    ``unchanged`` if its labels are the first ones of the list.
    """
    found = sorted(done, key=lambda one: one.time)
    suggested = [set(one.suggested) for one in found]
    labels = [set(one.labels) for one in found]
    pairs = list(zip(labels, suggested, strict=True))
    return Progress(
        documents=n_documents,
        done=len(found),
        accepted=sum(len(given & shown) for given, shown in pairs),
        rejected=sum(mark == "reject" for one in found for mark in one.marks.values()),
        added=sum(len(given - shown) for given, shown in pairs),
        unchanged=sum(set(one.suggested[: len(given)]) == given for one, given in zip(found, labels, strict=True)),
        by_person=dict(Counter(one.who or "" for one in found).most_common()),
        agreement=_agreement(found),
    )


def _agreement(found: list[Reviewed]) -> list[Point]:
    told = [one for one in found if one.suggested]
    size = max(1, -(-len(told) // _POINTS))
    points = []
    for start in range(0, len(told), size):
        part = told[start : start + size]
        n_labels = sum(len(one.labels) for one in part)
        n_found = sum(len(set(one.labels) & set(one.suggested)) for one in part)
        n_first = sum(one.suggested[0] in one.labels for one in part)
        found_share = n_found / n_labels if n_labels else 1.0
        points.append(Point(documents=len(part), first=n_first / len(part), found=found_share))
    return points
