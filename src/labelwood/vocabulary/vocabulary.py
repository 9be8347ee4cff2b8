"""A vocabulary as packed arrays: what a model keeps, and what names its labels.

Concepts are sorted by URI, so that one is found by bisection in the packed strings, and so that equal vocabularies have
equal arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.packed.base import check_pointer, pointer_to, require
from labelwood.sparse import I32, I64, U8
from labelwood.storage import packed_strings
from labelwood.vocabulary.concept import (
    BROADER,
    LINK_KINDS,
    NOTATION,
    PREFERRED,
    REPLACED_BY,
    TEXT_KINDS,
    Concept,
    Link,
    Text,
    check_language,
    one_preferred,
)

PREFIX = "vocabulary."
_OWNER = "vocabulary"
NAME_KINDS = (0, 1)  # preferred and alternative names: the texts of a label


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Concepts 0..n-1 in the order of their URIs.

    ``uris`` and ``uri_ends`` pack the URIs of the concepts, followed by those of concepts outside of the vocabulary
    that links lead to. The texts of concept i are ``text_ptr[i] .. text_ptr[i + 1]``, each with its kind, its language
    and its characters; its links are ``link_ptr[i] .. link_ptr[i + 1]``, each with its kind and the number of a URI.
    """

    uris: U8
    uri_ends: I64
    languages_packed: U8
    language_ends: I64
    deprecated: U8
    text_ptr: I64
    text_kind: U8
    text_language: I32
    texts: U8
    text_ends: I64
    link_ptr: I64
    link_kind: U8
    link_target: I32

    @classmethod
    def of(cls, concepts: Iterable[Concept]) -> Vocabulary:
        """Pack concepts, whose URIs must be distinct."""
        ordered = sorted(concepts, key=lambda concept: concept.uri.encode("utf-8", "surrogatepass"))
        for one, other in pairwise(ordered):
            require(_OWNER, one.uri != other.uri, f"the concept {one.uri!r} stands twice in the vocabulary")
        number = {concept.uri: place for place, concept in enumerate(ordered)}
        outside = sorted({link.uri for concept in ordered for link in concept.links} - number.keys())
        number |= {uri: len(ordered) + place for place, uri in enumerate(outside)}
        texts = [one_preferred(concept.texts)[0] for concept in ordered]
        links = [sorted({(link.kind, number[link.uri]) for link in concept.links}) for concept in ordered]
        languages = sorted({text.language for own in texts for text in own})
        tag = {language: place for place, language in enumerate(languages)}
        uris, uri_ends = packed_strings.pack([concept.uri for concept in ordered] + outside)
        packed, ends = packed_strings.pack([text.text for own in texts for text in own])
        tags, tag_ends = packed_strings.pack(languages)
        return cls(
            uris=uris,
            uri_ends=uri_ends,
            languages_packed=tags,
            language_ends=tag_ends,
            deprecated=np.array([concept.deprecated for concept in ordered], np.uint8),
            text_ptr=pointer_to([len(own) for own in texts]),
            text_kind=np.array([text.kind for own in texts for text in own], np.uint8),
            text_language=np.array([tag[text.language] for own in texts for text in own], np.int32),
            texts=packed,
            text_ends=ends,
            link_ptr=pointer_to([len(own) for own in links]),
            link_kind=np.array([kind for own in links for kind, _ in own], np.uint8),
            link_target=np.array([target for own in links for _, target in own], np.int32),
        )

    def __len__(self) -> int:
        return len(self.deprecated)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return all(np.array_equal(mine, other.arrays()[name]) for name, mine in self.arrays().items())

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Concept]:
        return map(self.concept, range(len(self)))

    @cached_property
    def languages(self) -> list[str]:
        """The languages of the texts, in the order of their tags; an empty tag stands for no language."""
        return packed_strings.unpack(self.languages_packed, self.language_ends, what="a language")

    @cached_property
    def name_languages(self) -> list[str]:
        """The languages of preferred names, that with the most names first."""
        counts = np.bincount(self.text_language[self.text_kind == PREFERRED], minlength=len(self.languages))
        order = np.argsort(-counts, kind="stable")
        return [self.languages[place] for place in order.tolist() if counts[place]]

    def uri(self, concept: int) -> str:
        """The URI of a concept."""
        return self.uris_of([concept])[0]

    def uris_of(self, concepts: Sequence[int]) -> list[str]:
        """The URIs of several concepts."""
        return packed_strings.unpack(self.uris, self.uri_ends, np.asarray(concepts, np.int64), what="a URI")

    def find(self, uri: object) -> int | None:
        """The number of the concept with a URI; None if there is none. An integer is looked up by its digits."""
        place = self.place(uri)
        return place if place < len(self) and self._uri_bytes(place) == _utf8(uri) else None

    def place(self, uri: object) -> int:
        """The number of the first concept whose URI is not below a URI: its own, or where it would be inserted."""
        wanted = _utf8(uri)
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._uri_bytes(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _uri_bytes(self, concept: int) -> bytes:
        return self.uris[self.uri_ends[concept] : self.uri_ends[concept + 1]].tobytes()

    def name(self, concept: int, language: str = "") -> str | None:
        """The preferred name in a language, or else in the nearest one; None if the concept has no name.

        The nearest are ``en`` for ``en-gb``, then names without a language, then the languages in the order of
        :attr:`name_languages`.
        """
        span = slice(self.text_ptr[concept], self.text_ptr[concept + 1])
        own = np.flatnonzero(self.text_kind[span] == PREFERRED)
        if not len(own):
            return None
        held = {int(self.text_language[span][place]): int(place) for place in own}
        wanted = (language, language.partition("-")[0], "", *self.name_languages)
        tags = (self._tags[one] for one in wanted if one in self._tags)
        place = next((held[tag] for tag in tags if tag in held), int(own[0]))
        return self._text(int(self.text_ptr[concept]) + place)

    @cached_property
    def _tags(self) -> dict[str, int]:
        return {language: place for place, language in enumerate(self.languages)}

    def _text(self, place: int) -> str:
        return packed_strings.unpack(self.texts, self.text_ends, np.array([place]), what="a name")[0]

    def texts_of(self, concept: int, kinds: Sequence[int] = NAME_KINDS, language: str | None = None) -> list[str]:
        """The distinct texts of some kinds, preferred names first; in one language, or in all."""
        span = np.arange(self.text_ptr[concept], self.text_ptr[concept + 1])
        kept = np.isin(self.text_kind[span], kinds)
        if language is not None:
            kept &= self.text_language[span] == self._tags.get(language, -1)
        found = packed_strings.unpack(self.texts, self.text_ends, span[kept], what="a name")
        return list(dict.fromkeys(found))

    def packed_texts(self) -> Callable[[int], tuple[bytes, ...]]:
        """A function from a concept to its texts as bytes: kinds, languages, sizes and characters.

        Between vocabularies of the same languages, equal bytes mean equal texts.
        """
        places, ends = self.text_ptr.tolist(), self.text_ends[self.text_ptr].tolist()
        columns = (
            (self.text_kind.tobytes(), 1),
            (self.text_language.tobytes(), self.text_language.itemsize),
            (np.diff(self.text_ends).tobytes(), self.text_ends.itemsize),
        )
        characters = self.texts.tobytes()

        def packed(concept: int) -> tuple[bytes, ...]:
            begin, end = places[concept], places[concept + 1]
            facts = (column[size * begin : size * end] for column, size in columns)
            return (*facts, characters[ends[concept] : ends[concept + 1]])

        return packed

    def linked(self, concept: int, kind: int = BROADER) -> list[int]:
        """The concepts of the vocabulary that a kind of link leads to; by default the broader ones."""
        span = slice(self.link_ptr[concept], self.link_ptr[concept + 1])
        targets = self.link_target[span][self.link_kind[span] == kind]
        return [target for target in targets.tolist() if target < len(self)]

    def narrower(self, concept: int) -> list[int]:
        """The concepts that have a concept as their broader one."""
        links = np.flatnonzero((self.link_target == concept) & (self.link_kind == BROADER))
        found: list[int] = (np.searchsorted(self.link_ptr, links, side="right") - 1).tolist()
        return found

    def shown(self, uris: Iterable[str], language: str = "") -> list[str]:
        """URIs with the names of their concepts before them, for people: ``cat <http://...>``."""
        found = []
        for uri in uris:
            number = self.find(uri)
            name = None if number is None else self.name(number, language)
            found.append(uri if name is None else f"{name} <{uri}>")
        return found

    def concept(self, concept: int) -> Concept:
        """A concept as a plain record."""
        span = range(self.text_ptr[concept], self.text_ptr[concept + 1])
        texts = packed_strings.unpack(self.texts, self.text_ends, np.array(span, np.int64), what="a name")
        links = slice(self.link_ptr[concept], self.link_ptr[concept + 1])
        kinds, targets = self.link_kind[links].tolist(), self.link_target[links].tolist()
        return Concept(
            self.uri(concept),
            tuple(
                Text(int(self.text_kind[place]), self.languages[self.text_language[place]], text)
                for place, text in zip(span, texts, strict=True)
            ),
            tuple(Link(kind, uri) for kind, uri in zip(kinds, self.uris_of(targets), strict=True)),
            bool(self.deprecated[concept]),
        )

    def current(self, concept: int) -> int | None:
        """The concept to use for a concept: itself, or what replaces it; None if it is deprecated without one.

        A replacement is followed as long as it is deprecated, too. Several replacements leave the choice open: None.
        """
        seen: set[int] = set()
        while self.deprecated[concept]:
            following = self.linked(concept, REPLACED_BY)
            if concept in seen or len(following) != 1:
                return None
            seen.add(concept)
            concept = following[0]
        return concept

    def _current_names(self) -> tuple[list[int], list[str]]:
        """The preferred names of current concepts in all languages, each with its concept."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.text_ptr))
        kept = np.flatnonzero((self.text_kind == PREFERRED) & (self.deprecated[owners] == 0))
        return owners[kept].tolist(), packed_strings.unpack(self.texts, self.text_ends, kept, what="a name")

    def names(self) -> list[str]:
        """The preferred names of current concepts in all languages."""
        return self._current_names()[1]

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Preferred name in lower case to concept, over all languages; -1 if several current concepts have it."""
        found: dict[str, int] = {}
        for owner, name in zip(*self._current_names(), strict=True):
            key = name.casefold()
            found[key] = owner if found.get(key, owner) == owner else -1
        return found

    def resolve(self, label: object) -> int | None:
        """The concept that a label means: by its URI, with or without <>, else by a preferred name that only it has."""
        if (found := self.find(label)) is not None:
            return found
        if isinstance(label, str):
            if label.startswith("<") and label.endswith(">"):
                return self.find(label[1:-1])
            named = self.by_name.get(label.casefold(), -1)
            return named if named >= 0 else None
        return None

    def label_texts(self, language: str | None = None) -> dict[str, list[str]]:
        """The preferred and alternative names of every current concept, by URI: the texts of the labels."""
        found = {}
        for concept in np.flatnonzero(self.deprecated == 0).tolist():
            texts = self.texts_of(concept, language=language)
            if texts:
                found[self.uri(concept)] = texts
        return found

    def count(self, kind: int) -> int:
        """The number of texts of a kind."""
        return int((self.text_kind == kind).sum())

    def describe(self) -> dict[str, Any]:
        """Counts and languages, for people."""
        return {
            "concepts": len(self),
            "deprecated": int(self.deprecated.sum()),
            "languages": self.name_languages,
            **{f"{name}_texts": self.count(kind) for kind, name in enumerate(TEXT_KINDS) if kind <= NOTATION},
            **{name: int((self.link_kind == kind).sum()) for kind, name in enumerate(LINK_KINDS)},
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by the names under which a model keeps them."""
        return {PREFIX + field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Vocabulary | None:
        """The vocabulary among the arrays of a model, checked; None if the model keeps none."""
        if not any(name.startswith(PREFIX) for name in arrays):
            return None
        given = {field.name: arrays.get(PREFIX + field.name) for field in fields(cls)}
        missing = [name for name, array in given.items() if array is None]
        require(_OWNER, not missing, f"the array {', '.join(missing)} is missing")
        found = cls(**given)  # type: ignore[arg-type]  # none is None
        found.check()
        return found

    def check(self) -> None:
        """Raise a :class:`FormatError` if the arrays do not fit together."""
        kinds = {"uri_ends": np.int64, "language_ends": np.int64, "text_ptr": np.int64, "text_ends": np.int64,
                 "link_ptr": np.int64, "text_language": np.int32, "link_target": np.int32}  # fmt: skip
        for field in fields(self):
            array = getattr(self, field.name)
            fits = array.ndim == 1 and array.dtype == kinds.get(field.name, np.uint8)
            require(_OWNER, fits, f"{field.name} must be one row of {np.dtype(kinds.get(field.name, np.uint8))}")
            require(_OWNER, len(array) or not field.name.endswith(("_ends", "_ptr")), f"{field.name} must not be empty")
        n, n_uris, n_tags = len(self), len(self.uri_ends) - 1, len(self.language_ends) - 1
        require(_OWNER, n <= n_uris and (self.deprecated <= 1).all(), "each concept must have a URI")
        for strings, ends in ((self.uris, self.uri_ends), (self.languages_packed, self.language_ends),
                              (self.texts, self.text_ends)):  # fmt: skip
            require(_OWNER, packed_strings.are_sound(strings, ends, len(ends) - 1), "the offsets of strings must rise")
        check_pointer(_OWNER, "text_ptr", self.text_ptr, n, len(self.text_kind))
        check_pointer(_OWNER, "link_ptr", self.link_ptr, n, len(self.link_kind))
        require(_OWNER, len(self.text_kind) == len(self.text_language) == len(self.text_ends) - 1, "texts must agree")
        require(_OWNER, (self.text_kind < len(TEXT_KINDS)).all(), "the kind of a text is not known")
        require(_OWNER, _all_below(self.text_language, n_tags), "the language of a text is not known")
        require(_OWNER, len(self.link_kind) == len(self.link_target), "links must agree")
        require(_OWNER, (self.link_kind < len(LINK_KINDS)).all(), "the kind of a link is not known")
        require(_OWNER, _all_below(self.link_target, n_uris), "a link leads nowhere")
        for tag in self.languages:
            check_language(tag, _OWNER)


def _utf8(uri: object) -> bytes:
    return str(uri).encode("utf-8", "surrogatepass")


def _all_below(numbers: I32, count: int) -> bool:
    return bool(((numbers >= 0) & (numbers < count)).all())
