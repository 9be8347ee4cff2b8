"""Why a label is suggested, for people: the words of the text that speak for it, and plain sentences."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from labelwood.explain import Explanation, Suggestion
from labelwood.hybrid import words_of
from labelwood.review.documents import parts_of
from labelwood.sparse import CSR
from labelwood.text import Document
from labelwood.vocabulary.name_search import fold

Encode = Callable[[Sequence[Document]], CSR]

_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 20_000  # of a text that are looked at
_WEAKEST = 0.1  # of the strongest word; weaker words are not marked
_NAMED = 4  # words in a sentence
_CLUES = 3


class Mark(NamedTuple):
    """Characters ``start`` to ``end`` of a part of the text speak for a label, or against it if ``amount`` < 0."""

    part: int
    start: int
    end: int
    amount: float


class Evidence(NamedTuple):
    """The marked words, in the order of the text, and sentences."""

    marks: list[Mark]
    sentences: list[str]


class _Word(NamedTuple):
    part: int
    start: int
    end: int
    text: str


def by_model(text: Document, label: str, explanation: Explanation, encode: Encode, place: int) -> Evidence:
    """The evidence of a model for the label at a place of its list; ``encode`` turns texts into the model's rows."""
    found = _suggestion(explanation, label)
    amounts = amounts_of(explanation, label)
    marks = _marks(_words(text), amounts, encode, text) if amounts else []
    sentences = _spoken(text, marks)
    if explanation.row_is_empty:
        sentences.append("The model knows no word of this text.")
    if found is not None:
        sure = found.score if found.probability is None else found.probability
        sentences.append(f"Its score is {sure:.0%}, number {place} of the list.")
        sentences += [f"The model noticed: {clue.what}." for clue in found.clues[1 : 1 + _CLUES] if clue.amount > 0]
        if found.shares:
            sentences.append(
                f"In {len(found.shares)} of {len(explanation.routes)} leaves, similar training texts have this label."
            )
    return Evidence(marks, sentences)


def by_name(text: Document, names: Iterable[str]) -> Evidence:
    """The evidence of the first of the names of which all words stand in the text; without one, of their words."""
    words = _words(text)
    present = {fold(word.text) for word in words}
    cut = [(name, _folded(name)) for name in names]
    whole = next((pair for pair in cut if pair[1] and pair[1] <= present), None)
    wanted = whole[1] if whole else {word for _, own in cut for word in own}
    marks = [Mark(one.part, one.start, one.end, 1.0) for one in words if fold(one.text) in wanted]
    if whole:
        return Evidence(marks, [f"Its name stands in the text: “{whole[0]}”."])
    return Evidence(marks, _spoken(text, marks) or ["No word of its name stands in the text."])


def standing(text: Document, names: Iterable[str]) -> list[str]:
    """The names of which all words stand in the text, the longest first."""
    present = {fold(word.text) for word in _words(text)}
    found = [(len(words), name) for name in names if (words := _folded(name)) and words <= present]
    return [name for _, name in sorted(found, key=lambda pair: -pair[0])]


def amounts_of(explanation: Explanation, label: str) -> dict[int, float]:
    """What each feature adds to the scores on the way to a label, summed over trees and members."""
    total: dict[int, float] = defaultdict(float)
    found = _suggestion(explanation, label)
    if found is not None:
        steps = [(step, 1.0) for path in found.paths for step in path.steps]
        steps += [(step, share.amount) for share in found.shares for step in explanation.routes[share.route].steps]
        for step, weight in steps:
            for one in step.contributions:
                total[one.feature] += weight * one.amount
    for member in explanation.members:
        for feature, amount in amounts_of(member.explanation, label).items():
            total[feature] += (1.0 if member.weight is None else member.weight) * amount
    return total


def _suggestion(explanation: Explanation, label: str) -> Suggestion | None:
    return next((one for one in explanation.suggestions if str(one.label) == label), None)


def _folded(name: str) -> set[str]:
    """The words of a name, as they are compared."""
    return {fold(word) for word in _WORD.findall(name)}


def _words(text: Document) -> list[_Word]:
    found = (
        _Word(part, match.start(), match.end(), match[0])
        for part, (_, content) in enumerate(parts_of(text))
        for match in _WORD.finditer(content)
    )
    return [word for word, _ in zip(found, range(_MOST_WORDS), strict=False)]


def _marks(words: list[_Word], amounts: Mapping[int, float], encode: Encode, text: Document) -> list[Mark]:
    """Give each word the amounts of its columns, and half of those that only the pair with its neighbour has.

    A word is encoded as a text of its own, so that the forms of words do not matter.
    """
    names = [name for name, _ in parts_of(text)]
    singles = list(dict.fromkeys((word.part, word.text) for word in words))
    pairs = list(dict.fromkeys((a.part, f"{a.text} {b.text}") for a, b in pairwise(words) if a.part == b.part))
    terms = [*singles, *pairs]
    rows = words_of(encode([{names[part]: term} if names[part] else term for part, term in terms]))
    columns = {
        term: frozenset(rows.indices[start:end].tolist())
        for term, (start, end) in zip(terms, pairwise(rows.indptr.tolist()), strict=True)
    }
    own = np.array([sum(amounts.get(c, 0.0) for c in columns[word.part, word.text]) for word in words])
    for place, (a, b) in enumerate(pairwise(words)):
        joint = columns.get((a.part, f"{a.text} {b.text}"), frozenset()) if a.part == b.part else frozenset()
        more = joint - columns[a.part, a.text] - columns[b.part, b.text]
        own[place : place + 2] += sum(amounts.get(column, 0.0) for column in more) / 2
    least = _WEAKEST * np.abs(own).max(initial=0.0)
    return [
        Mark(word.part, word.start, word.end, round(float(amount), 4))
        for word, amount in zip(words, own.tolist(), strict=True)
        if amount and abs(amount) >= least
    ]


def _spoken(text: Document, marks: list[Mark]) -> list[str]:
    """Sentences about the strongest words for a label, and against it."""
    parts = parts_of(text)
    strength: dict[str, float] = {}
    for one in marks:
        strength.setdefault(parts[one.part][1][one.start : one.end].lower(), one.amount)
    told = []
    for sign, how in ((1, "for"), (-1, "against")):
        chosen = sorted((word for word in strength if sign * strength[word] > 0), key=lambda w: -sign * strength[w])
        listed = [f"“{word}”" for word in chosen[:_NAMED]]
        if len(listed) == 1:
            told.append(f"The word {listed[0]} speaks {how} it.")
        elif listed:
            told.append(f"The words {', '.join(listed[:-1])} and {listed[-1]} speak {how} it.")
    return told
