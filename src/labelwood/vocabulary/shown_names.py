"""Labels for people: the name of a label's concept in a language, with the URI beside it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from labelwood.errors import LabelwoodError
from labelwood.vocabulary.concept import check_language
from labelwood.vocabulary.vocabulary import Vocabulary

_KEPT = 100_000  # names that are looked up once


class ShownNames:
    """The names of labels in a language; without a vocabulary no label has a name beside itself.

    >>> from labelwood.vocabulary import Concept
    >>> from labelwood.vocabulary.concept import PREFERRED, Text
    >>> cat = Concept("ex:cat", (Text(PREFERRED, "en", "cat"), Text(PREFERRED, "fi", "kissa")))
    >>> ShownNames(Vocabulary.of([cat]), "fi").shown("ex:cat")
    'kissa <ex:cat>'
    """

    def __init__(self, vocabulary: Vocabulary | None, language: str | None = None) -> None:
        self._vocabulary, self._language = vocabulary, known_language(vocabulary, language)
        self._concept = lru_cache(_KEPT)(self._look_up)

    def __bool__(self) -> bool:
        return self._vocabulary is not None

    def name(self, label: Any) -> str | None:
        """The name of a label's concept; None if there is no such concept, or if it has no name."""
        found: tuple[str, str | None] | None = self._concept(label)
        return None if found is None else found[1]

    def uri(self, label: Any) -> str | None:
        """The URI of a label's concept, which is the label itself unless labels are names."""
        found: tuple[str, str | None] | None = self._concept(label)
        return None if found is None else found[0]

    def shown(self, label: Any) -> str:
        """``name <URI>``, or the label itself."""
        found: tuple[str, str | None] | None = self._concept(label)
        return str(label) if found is None or found[1] is None else f"{found[1]} <{found[0]}>"

    def _look_up(self, label: Any) -> tuple[str, str | None] | None:
        if self._vocabulary is None:
            return None
        concept = self._vocabulary.resolve(label)
        if concept is None:
            return None
        return self._vocabulary.uri(concept), self._vocabulary.name(concept, self._language)


def known_language(vocabulary: Vocabulary | None, language: str | None) -> str:
    """A language of the vocabulary, or nothing for the one with the most names; raise if there are no such names."""
    if language is None:
        return ""
    tag = check_language(language, "language")
    if vocabulary is None:
        raise LabelwoodError("language: the model has no vocabulary to take names from; train with --vocabulary FILE")
    known = [one for one in vocabulary.name_languages if one]
    if tag not in known:
        raise LabelwoodError(f"language must be one of {', '.join(known) or 'none'}; got {language!r}")
    return tag
