"""Concepts while a file is read: texts and links arrive in any order and are packed at the end."""

from __future__ import annotations

from typing import NamedTuple

from labelwood.vocabulary.concept import (
    PREFERRED,
    TEXT_KINDS,
    Concept,
    Link,
    Text,
    check_language,
    check_uri,
    clean_text,
    one_preferred,
)
from labelwood.vocabulary.hierarchy import in_cycles
from labelwood.vocabulary.vocabulary import Vocabulary


class Reading(NamedTuple):
    """A vocabulary from a file, and remarks about what was odd in it, one sentence each."""

    vocabulary: Vocabulary
    remarks: list[str]


class Drafts:
    """The concepts found so far; ``remarks`` collects what is odd."""

    def __init__(self) -> None:
        self._texts: dict[str, set[Text]] = {}
        self._links: dict[str, set[Link]] = {}
        self._deprecated: set[str] = set()
        self.remarks: list[str] = []

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, uri: str) -> bool:
        return uri in self._texts

    def add(self, uri: str, where: str) -> bool:
        """Note that there is a concept; False if it is known already."""
        if uri in self._texts:
            return False
        check_uri(uri, where)
        self._texts[uri], self._links[uri] = set(), set()
        return True

    def add_text(self, uri: str, kind: int, language: str | None, text: str, where: str) -> None:
        """Add a text to a concept; an empty text is left out."""
        cleaned = clean_text(text, kind, where)
        if cleaned:
            self._texts[uri].add(Text(kind, check_language(language, where), cleaned))

    def add_link(self, uri: str, kind: int, target: str, where: str) -> None:
        """Add a link to a concept."""
        self._links[uri].add(Link(kind, check_uri(target, where)))

    def deprecate(self, uri: str) -> None:
        """Mark a concept as deprecated."""
        self._deprecated.add(uri)

    def deprecate_nameless(self) -> None:
        """Mark the concepts without a text as deprecated, as Annif's tables do."""
        self._deprecated |= {uri for uri, texts in self._texts.items() if not texts}

    def finish(self) -> Reading:
        """The vocabulary of all concepts."""
        moved = sum(one_preferred(texts)[1] for texts in self._texts.values())
        self._remark(moved, "preferred names stand beside another one of the same language: they became alternatives")
        vocabulary = Vocabulary.of(
            Concept(uri, tuple(texts), tuple(self._links[uri]), uri in self._deprecated)
            for uri, texts in self._texts.items()
        )
        nameless = sum(
            not any(text.kind == PREFERRED for text in texts)
            for uri, texts in self._texts.items()
            if uri not in self._deprecated
        )
        self._remark(nameless, f"concepts have no {TEXT_KINDS[PREFERRED]} name: their URI is shown")
        cycle = in_cycles(vocabulary)
        if cycle:
            self._remark(len(cycle), f"concepts are broader than themselves, such as {vocabulary.uri(cycle[0])}")
        return Reading(vocabulary, self.remarks)

    def _remark(self, count: int, text: str) -> None:
        if count:
            self.remarks.append(f"{count:,} {text}")
