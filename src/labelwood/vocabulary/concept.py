"""A concept of a vocabulary as a plain record, and the rules for its texts and links.

Texts and links have a kind each. The kinds are those of SKOS: preferred, alternative and hidden names, notations and
definitions; broader and related concepts, and the concepts that replace a deprecated one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from labelwood.errors import FormatError
from labelwood.label_names import name_problem

PREFERRED, ALTERNATIVE, HIDDEN, NOTATION, DEFINITION = range(5)
TEXT_KINDS = ("preferred", "alternative", "hidden", "notation", "definition")
BROADER, RELATED, REPLACED_BY = range(3)
LINK_KINDS = ("broader", "related", "replaced_by")

MAX_DEFINITION = 10_000  # characters; names have at most 1,000
_LANGUAGE = re.compile(r"([a-z]{1,8}(-[a-z0-9]{1,8})*)?")
_BREAKS = re.compile(r"[ \t\r\n]+")


class Text(NamedTuple):
    """A name or a definition; ``language`` is a tag in lower case such as ``fi``, or empty."""

    kind: int
    language: str
    text: str


class Link(NamedTuple):
    """A relation to another concept."""

    kind: int
    uri: str


@dataclass(frozen=True)
class Concept:
    """A concept: its URI (or another key), its texts, its links, and whether it is deprecated.

    >>> cat = Concept("ex:cat", (Text(PREFERRED, "en", "cat"), Text(PREFERRED, "fi", "kissa")))
    >>> cat.named("fi")
    'kissa'
    """

    uri: str
    texts: tuple[Text, ...] = ()
    links: tuple[Link, ...] = ()
    deprecated: bool = False

    def named(self, language: str) -> str | None:
        """The preferred name in a language."""
        return next((one.text for one in self.texts if one.kind == PREFERRED and one.language == language), None)

    def linked(self, kind: int) -> list[str]:
        """The URIs of the concepts that a kind of link leads to."""
        return [link.uri for link in self.links if link.kind == kind]


def clean_text(text: str, kind: int, where: str) -> str:
    """A text without line breaks, tabs and blanks around it; ``where`` opens the error about a bad one.

    An empty text stays empty, for the caller to leave out.
    """
    cleaned = text if text.isprintable() else _BREAKS.sub(" ", text)
    cleaned = cleaned.strip(" ")
    if kind == DEFINITION and len(cleaned) > MAX_DEFINITION:
        raise FormatError(f"{where}: a definition must have at most {MAX_DEFINITION} characters; got {len(cleaned)}")
    parts = [cleaned] if kind != DEFINITION else [cleaned[at : at + 1000] for at in range(0, len(cleaned), 1000)]
    for part in filter(None, parts):
        if (problem := name_problem(part)) is not None:
            what = "definition" if kind == DEFINITION else "name"
            raise FormatError(f"{where}: {problem.replace('label name', f'{TEXT_KINDS[kind]} {what}'.strip(), 1)}")
    return cleaned


def check_language(tag: str | None, where: str) -> str:
    """A language tag in lower case; empty for None."""
    lower = (tag or "").lower()
    if not _LANGUAGE.fullmatch(lower):
        raise FormatError(f"{where}: a language must be a tag such as fi or en-GB; got {(tag or '')[:40]!r}")
    return lower


def check_uri(uri: str, where: str) -> str:
    """The URI or the key of a concept, which follows the rule for label names."""
    if (problem := name_problem(uri)) is not None:
        raise FormatError(f"{where}: {problem.replace('label name', 'URI', 1)}")
    return uri


def one_preferred(texts: Iterable[Text]) -> tuple[list[Text], int]:
    """Distinct sorted texts with one preferred name per language, and the number of names that were moved.

    Of several preferred names in a language the first in the order of characters stays; the others become
    alternatives.
    """
    kept: dict[Text, None] = {}
    taken: set[str] = set()
    moved = 0
    for text in sorted(set(texts)):
        one = text
        if text.kind == PREFERRED:
            if text.language in taken:
                one, moved = text._replace(kind=ALTERNATIVE), moved + 1
            taken.add(text.language)
        kept[one] = None
    return sorted(kept), moved
