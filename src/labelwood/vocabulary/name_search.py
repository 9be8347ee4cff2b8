"""Find-as-you-type: the labels whose names have words that begin as the typed words do."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.sparse import I32, I64, Bool

_TOKEN = re.compile(r"[^\W_]+|\n")
_MARKS = re.compile("[\u0300-\u036f]")
_LAST = "\U0010ffff"  # behind every word with a prefix
_MOST_WORDS = 20  # of a query
_NO_MATCH = 4  # tiers of names that match are below
_AT_FIRST = 8  # names looked at for each label that is wanted; several names may be those of one label


def fold(text: str) -> str:
    """A text in lower case without accents, so that both are found with and without them.

    >>> fold("Kärpät")
    'karpat'
    """
    folded = text.casefold()
    return folded if folded.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", folded))


class NameSearch:
    """An index of the words of names: sorted words, and for each word the names that contain it.

    ``names`` are those of labels, ``owners`` the number of the label of each name, and ``ranks`` how good a name is: 0
    for preferred names, 1 for alternative ones. A name matches a query if each typed word begins one of its words. The
    best names begin with the first typed word, then come whole words, then ranks, then short names.

    >>> search = NameSearch(["income tax", "tax law", "taxi"], np.array([0, 1, 2]))
    >>> search.find("tax", 3), search.find("ta inc", 3)
    ([1, 2, 0], [0])
    """

    def __init__(
        self, names: Sequence[str], owners: npt.NDArray[np.integer], ranks: npt.NDArray[np.integer] | None = None
    ) -> None:
        tokens = _TOKEN.findall(fold("\n".join(names)))
        self._words = sorted(set(tokens) | {"\n"})
        number = {word: place for place, word in enumerate(self._words)}
        ids = np.fromiter(map(number.__getitem__, tokens), np.int32, len(tokens))
        ends = ids == number["\n"]
        name_of = np.cumsum(ends, dtype=np.int32)
        if len(names) != (int(name_of[-1]) + 1 if len(tokens) else min(len(names), 1)):
            raise LabelwoodError("NameSearch: a name must not contain a line break")
        is_first = np.concatenate([[True], ends[:-1]]) if len(ids) else ends
        kept = np.flatnonzero(~ends)
        order = kept[np.argsort(ids[kept], kind="stable")]
        self._names: I32 = name_of[order]
        self._is_first: Bool = is_first[order]
        self._ptr: I64 = np.searchsorted(ids[order], np.arange(len(self._words) + 1)).astype(np.int64)
        self._owners: I32 = np.asarray(owners, np.int32)
        self._place = self._places(names, name_of[kept], ranks)

    def _places(
        self, names: Sequence[str], name_of: I32, ranks: npt.NDArray[np.integer] | None
    ) -> npt.NDArray[np.int64]:
        """The place of each name among all: by rank, number of words, length, and order."""
        n_words = np.bincount(name_of, minlength=len(names))
        lengths = np.fromiter(map(len, names), np.int64, len(names))
        keys = (lengths, n_words) if ranks is None else (lengths, n_words, np.asarray(ranks))
        places = np.empty(len(names), np.int64)
        places[np.lexsort(keys)] = np.arange(len(names))
        return places

    def find(self, query: str, limit: int) -> list[int]:
        """The labels that a query finds, best first, at most ``limit``."""
        return [label for label, _ in self.find_names(query, limit)]

    def find_names(self, query: str, limit: int) -> list[tuple[int, int]]:
        """The labels that a query finds, each with the number of the name that was found."""
        typed = [word for word in _TOKEN.findall(fold(query)) if word != "\n"][:_MOST_WORDS]
        if not typed or limit < 1:
            return []
        names, tiers = self._matches(typed)
        keys = tiers.astype(np.int64) * len(self._place) + self._place[names]
        found: dict[int, int] = {}
        n_looked_at = _AT_FIRST * limit
        while True:
            for name in names[_smallest(keys, n_looked_at)].tolist():
                found.setdefault(int(self._owners[name]), name)
            if len(found) >= limit or n_looked_at >= len(names):
                return list(found.items())[:limit]
            n_looked_at *= _AT_FIRST

    def _matches(self, typed: list[str]) -> tuple[I64, npt.NDArray[np.int8]]:
        """The names with all typed words, and the tier of each by the first one.

        0: the name begins with the word; 1: with a longer word; 2: the word stands further on; 3: a longer word does.
        """
        start, whole, stop = self._span(typed[0])
        tiers = 2 * ~self._is_first[start:stop] + (np.arange(start, stop) >= whole)
        best = np.full(len(self._place), _NO_MATCH, np.int8)
        for tier in range(_NO_MATCH - 1, -1, -1):
            best[self._names[start:stop][tiers == tier]] = tier
        found = np.flatnonzero(best < _NO_MATCH)
        for word in typed[1:]:
            start, _, stop = self._span(word)
            has = np.zeros(len(self._place), bool)
            has[self._names[start:stop]] = True
            found = found[has[found]]
        return found, best[found]

    def _span(self, typed: str) -> tuple[int, int, int]:
        """The entries of the words that begin as typed: start, end of the word itself, end."""
        low, high = bisect_left(self._words, typed), bisect_left(self._words, typed + _LAST)
        is_word = low < high and self._words[low] == typed
        return int(self._ptr[low]), int(self._ptr[low + is_word]), int(self._ptr[high])


def _smallest(keys: I64, count: int) -> I64:
    """The places of the smallest keys, in their order."""
    chosen = np.argpartition(keys, count)[:count] if count < len(keys) else np.arange(len(keys))
    found: I64 = chosen[np.argsort(keys[chosen], kind="stable")]
    return found
