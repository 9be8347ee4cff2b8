"""Twin of text/analyzer.hpp, text/count_terms.hpp and text/weigh.hpp: texts to terms, counts and weights."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

_WORD = re.compile(r"\w+")
_WHITE = re.compile(r"\s\s+")


def cut_text(
    text: str, *, analyzer: str, ngram_range: tuple[int, int], token_length: int, lowercase: bool
) -> list[str]:
    """The terms of a text, with repetitions."""
    if lowercase:
        text = text.lower()
    shortest, longest = ngram_range
    if analyzer == "word":
        words = [word for word in _WORD.findall(text) if len(word) >= token_length]
        return [" ".join(window) for window in windows(words, shortest, longest)]
    text = _WHITE.sub(" ", text)
    if analyzer == "char":
        return list(windows(text, shortest, longest))
    terms = []
    for word in text.split():
        padded = f" {word} "
        # A word that is shorter than the shortest n-gram is one term.
        terms += list(windows(padded, shortest, longest)) or [padded]
    return terms


def windows(items: Sequence[str], shortest: int, longest: int) -> Iterator[Any]:
    """All runs of ``shortest`` to ``longest`` consecutive items."""
    for n in range(shortest, min(longest, len(items)) + 1):
        yield from (items[i : i + n] for i in range(len(items) - n + 1))


def learn_terms(documents: Sequence[Sequence[str]], fewest: int, most: int) -> list[str]:
    """The terms of at least ``fewest`` and at most ``most`` documents, sorted by code points."""
    n_documents = Counter(term for terms in documents for term in set(terms))
    return sorted(term for term, count in n_documents.items() if fewest <= count <= most)


def count_terms(terms: Sequence[str], vocabulary: Sequence[str]) -> dict[int, int]:
    """The counts of one document by column; terms that are not in the vocabulary are ignored."""
    column = {term: number for number, term in enumerate(vocabulary)}
    return dict(sorted(Counter(column[term] for term in terms if term in column).items()))


def join_fields(fields: Sequence[dict[int, float]], weights: Sequence[float]) -> dict[int, float]:
    """The weights of a document by column from those of its fields: their weighted sum."""
    columns = sorted({column for field in fields for column in field})
    return {c: sum(w * field.get(c, 0.0) for w, field in zip(weights, fields, strict=True)) for c in columns}


def weigh(
    counts: dict[int, int], *, scale: Sequence[float] | None, sublinear: bool, binary: bool, norm: str | None
) -> dict[int, float]:
    """The weights of one document by column."""
    weights = {
        column: (1.0 if binary else 1 + math.log(count) if sublinear else count)
        * (1.0 if scale is None else scale[column])
        for column, count in counts.items()
    }
    if norm is None:
        return weights
    length = math.sqrt(sum(w * w for w in weights.values())) if norm == "l2" else sum(map(abs, weights.values()))
    return {column: weight / (length or 1.0) for column, weight in weights.items()}
