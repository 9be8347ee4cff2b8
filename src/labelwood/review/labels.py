"""The labels that people choose from: their names in a language, their place in the hierarchy, and the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from labelwood.label_names import LabelNames
from labelwood.sparse import I32, I64
from labelwood.storage import packed_strings
from labelwood.vocabulary import Vocabulary
from labelwood.vocabulary.concept import ALTERNATIVE, HIDDEN, NOTATION, PREFERRED
from labelwood.vocabulary.name_search import NameSearch
from labelwood.vocabulary.shown_names import known_language

_SEARCHED = (PREFERRED, ALTERNATIVE, HIDDEN, NOTATION)
_DEEPEST = 6  # concepts shown above a label
_LABEL_RANK = 2  # of a label itself, behind preferred and alternative names


class ShownLabel(NamedTuple):
    """A label as the page shows it: ``place`` are the names of broader concepts, the broadest first.

    ``also`` is the name that a search found, if it is another than the one shown.
    """

    label: str
    name: str
    place: list[str]
    also: str | None = None


class KnownLabels:
    """The labels of a model, of a vocabulary and of label texts, each a string.

    A concept of the vocabulary is the label by which the model knows it, or else its URI.
    """

    def __init__(
        self,
        names: LabelNames | None = None,
        vocabulary: Vocabulary | None = None,
        texts: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        own = [] if names is None else [str(name) for name in names.array.tolist()]
        labels = dict.fromkeys([*own, *(texts or {})])
        concepts = {} if vocabulary is None else self._concepts(vocabulary, labels)
        self._labels = list(labels)
        self._concept_of: I64 = np.fromiter(
            (concepts.get(label, -1) for label in self._labels), np.int64, len(self._labels)
        )
        self._texts = texts or {}

    @staticmethod
    def _concepts(vocabulary: Vocabulary, labels: dict[str, None]) -> dict[str, int]:
        """The concept of each label; adds the current concepts that are no label yet."""
        found = {label: concept for label in labels if (concept := vocabulary.resolve(label)) is not None}
        taken = set(found.values())
        others = [concept for concept in np.flatnonzero(vocabulary.deprecated == 0).tolist() if concept not in taken]
        new = dict(zip(vocabulary.uris_of(others), others, strict=True))
        labels.update(dict.fromkeys(new))
        return found | new

    def __len__(self) -> int:
        return len(self._labels)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self._labels)}

    def knows(self, label: str) -> bool:
        """True if the label is one of these."""
        return label in self._index

    @property
    def is_closed(self) -> bool:
        """True if people may not add other labels: there is a vocabulary."""
        return self.vocabulary is not None

    @property
    def languages(self) -> list[str]:
        """The languages of the names."""
        return [] if self.vocabulary is None else [tag for tag in self.vocabulary.name_languages if tag]

    def language(self, asked: str | None) -> str:
        """A language of the names; raise if there are none in the one that is asked for."""
        return known_language(self.vocabulary, asked or None)

    def shown(self, label: str, language: str = "", also: str | None = None) -> ShownLabel:
        """A label with its name and its place."""
        number = self._index.get(label)
        concept = -1 if number is None else int(self._concept_of[number])
        if concept < 0 or self.vocabulary is None:
            name = next(iter(self._texts.get(label, ())), label)
            return ShownLabel(label, name, [], also if also != name else None)
        name = self.vocabulary.name(concept, language) or label
        return ShownLabel(label, name, self._place(concept, language), also if also != name else None)

    def _place(self, concept: int, language: str) -> list[str]:
        """The names of the concepts above a concept, along the first broader one of each."""
        vocabulary, above = self.vocabulary, [concept]
        assert vocabulary is not None
        while len(above) <= _DEEPEST:
            broader = [one for one in vocabulary.linked(above[-1]) if one not in above]
            if not broader:
                break
            above.append(broader[0])
        return [vocabulary.name(one, language) or vocabulary.uri(one) for one in reversed(above[1:])]

    def find(self, query: str, limit: int, language: str = "") -> list[ShownLabel]:
        """The labels with a name, in any language, whose words begin as typed."""
        search, names = self._search
        found = search.find_names(query, limit)
        return [self.shown(self._labels[label], language, also=names[name]) for label, name in found]

    def prepare(self) -> None:
        """Build the search now."""
        assert self._search

    @cached_property
    def _search(self) -> tuple[NameSearch, list[str]]:
        """The index of all names and of the labels themselves."""
        names, owners, ranks = self.names()
        whole = names + self._labels
        owners = np.concatenate([owners, np.arange(len(self._labels), dtype=np.int32)])
        return NameSearch(whole, owners, np.concatenate([ranks, np.full(len(self._labels), _LABEL_RANK)])), whole

    def names(self) -> tuple[list[str], I32, I32]:
        """All names, the number of the label of each, and its rank: 0 for preferred names, 1 for others.

        A label without a name is its own name.
        """
        names = [text for texts in self._texts.values() for text in texts]
        owners = [np.fromiter((self._index[label] for label, texts in self._texts.items() for _ in texts), np.int32)]
        ranks = [np.fromiter((place > 0 for texts in self._texts.values() for place, _ in enumerate(texts)), np.int32)]
        if self.vocabulary is not None:
            more, concepts, kinds = _names_of(self.vocabulary)
            label_of = np.full(len(self.vocabulary), -1, np.int32)
            known = np.flatnonzero(self._concept_of >= 0)
            label_of[self._concept_of[known]] = known
            kept = np.flatnonzero(label_of[concepts] >= 0)
            names += [more[place] for place in kept.tolist()]
            owners.append(label_of[concepts[kept]])
            ranks.append(np.minimum(kinds[kept], 1))
        nameless = np.ones(len(self._labels), bool)
        for some in owners:
            nameless[some] = False
        alone = np.flatnonzero(nameless)
        names += [self._labels[label] for label in alone.tolist()]
        owners.append(alone.astype(np.int32))
        ranks.append(np.zeros(len(alone), np.int32))
        return names, np.concatenate(owners), np.concatenate(ranks)

    def names_of(self, label: str) -> list[str]:
        """The names of one label, in all languages; the label itself if it has none."""
        number = self._index.get(label)
        concept = -1 if number is None else int(self._concept_of[number])
        found = [] if concept < 0 or self.vocabulary is None else self.vocabulary.texts_of(concept)
        return [*self._texts.get(label, ()), *found] or [label]

    @property
    def labels(self) -> Sequence[str]:
        """All labels, in the order of their numbers."""
        return self._labels


def _names_of(vocabulary: Vocabulary) -> tuple[list[str], I64, I32]:
    """The names of all concepts, in all languages: texts, concepts and kinds."""
    owners = np.repeat(np.arange(len(vocabulary)), np.diff(vocabulary.text_ptr))
    kept = np.flatnonzero(np.isin(vocabulary.text_kind, _SEARCHED))
    names = packed_strings.unpack(vocabulary.texts, vocabulary.text_ends, kept, what="a name")
    return names, owners[kept], vocabulary.text_kind[kept].astype(np.int32)
