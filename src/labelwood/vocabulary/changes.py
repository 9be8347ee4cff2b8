"""A vocabulary with some concepts replaced and some added, spliced from its packed arrays.

The concepts that stay are copied in long runs, without a look at the single concepts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.packed.base import pointer_to
from labelwood.sparse import I32, I64
from labelwood.storage import packed_strings
from labelwood.vocabulary.vocabulary import Vocabulary


class _Run(NamedTuple):
    """Concepts ``begin .. end`` of one of the two vocabularies."""

    source: Vocabulary
    begin: int
    end: int


def with_changes(old: Vocabulary, changes: Vocabulary) -> Vocabulary:
    """The concepts of ``changes``, and those of ``old`` with other URIs."""
    places = [old.place(changes.uri(concept)) for concept in range(len(changes))]
    is_new = np.array([place == len(old) or old.uri(place) != changes.uri(at) for at, place in enumerate(places)], bool)
    languages = sorted({*old.languages, *changes.languages})
    old_numbers, new_numbers, outside = _numbers(old, changes, np.array(places, np.int64), is_new)
    sources = (_renumbered(old, old_numbers, languages), _renumbered(changes, new_numbers, languages))
    runs, at = [], 0
    for concept, (place, added) in enumerate(zip(places, is_new.tolist(), strict=True)):
        runs += [_Run(sources[0], at, place), _Run(sources[1], concept, concept + 1)]
        at = place if added else place + 1
    runs.append(_Run(sources[0], at, len(old)))
    joined = _joined(runs)
    _sort_links(joined)
    return _without_unused(joined, languages, outside)


def _numbers(
    old: Vocabulary, changes: Vocabulary, places: I64, is_new: npt.NDArray[np.bool_]
) -> tuple[I32, I32, list[str]]:
    """The new numbers of the URIs of both vocabularies, and the URIs outside of the result, used or not."""
    n = len(old)
    added_before = np.bincount(places[is_new], minlength=n + 1).cumsum()[:n]
    old_numbers = np.arange(n) + added_before
    own_numbers = places + np.cumsum(is_new) - is_new
    count = n + int(is_new.sum())
    old_links = old.uris_of(range(n, len(old.uri_ends) - 1))
    own_links = changes.uris_of(range(len(changes), len(changes.uri_ends) - 1))
    inside = {uri: int(own_numbers[at]) for uri in old_links if (at := changes.find(uri)) is not None}
    inside |= {uri: int(old_numbers[at]) for uri in own_links if (at := old.find(uri)) is not None}
    outside = sorted({*old_links, *own_links} - inside.keys())
    number = inside | {uri: count + place for place, uri in enumerate(outside)}
    return (
        np.concatenate([old_numbers, [number[uri] for uri in old_links]]).astype(np.int32),
        np.concatenate([own_numbers, [number[uri] for uri in own_links]]).astype(np.int32),
        outside,
    )


def _renumbered(source: Vocabulary, numbers: I32, languages: list[str]) -> Vocabulary:
    tags = np.array([languages.index(tag) for tag in source.languages], np.int32)
    return replace(source, link_target=numbers[source.link_target], text_language=tags[source.text_language])


def _joined(runs: list[_Run]) -> Vocabulary:
    """The concepts of all runs, one after the other, without the URIs outside and without languages."""
    parts = [(source, slice(begin, end), slice(begin, end + 1)) for source, begin, end in runs]
    uri_spans = [(source, source.uri_ends[ends]) for source, _, ends in parts]
    text_spans = [(source, source.text_ptr[ends]) for source, _, ends in parts]
    link_spans = [(source, source.link_ptr[ends]) for source, _, ends in parts]
    texts = [(source, slice(span[0], span[-1]), slice(span[0], span[-1] + 1)) for source, span in text_spans]
    links = [(source, slice(span[0], span[-1])) for source, span in link_spans]
    string_spans = [(source, source.text_ends[ends]) for source, _, ends in texts]
    empty = np.empty(0, np.uint8)
    return Vocabulary(
        uris=np.concatenate([source.uris[span[0] : span[-1]] for source, span in uri_spans]),
        uri_ends=_pointer(uri_spans),
        languages_packed=empty,
        language_ends=np.zeros(1, np.int64),
        deprecated=np.concatenate([source.deprecated[own] for source, own, _ in parts]),
        text_ptr=_pointer(text_spans),
        text_kind=np.concatenate([source.text_kind[own] for source, own, _ in texts]),
        text_language=np.concatenate([source.text_language[own] for source, own, _ in texts]),
        texts=np.concatenate([source.texts[span[0] : span[-1]] for source, span in string_spans]),
        text_ends=_pointer(string_spans),
        link_ptr=_pointer(link_spans),
        link_kind=np.concatenate([source.link_kind[own] for source, own in links]),
        link_target=np.concatenate([source.link_target[own] for source, own in links]),
    )


def _pointer(spans: list[tuple[Vocabulary, I64]]) -> I64:
    return pointer_to(np.concatenate([np.diff(span) for _, span in spans]))


def _sort_links(joined: Vocabulary) -> None:
    """Sort the links of each concept again: a URI that became a concept has another number."""
    key = joined.link_kind * np.int64(2**31) + joined.link_target
    falls = np.flatnonzero(key[1:] <= key[:-1]) + 1
    owners = np.searchsorted(joined.link_ptr, falls, side="right") - 1
    for owner in np.unique(owners[joined.link_ptr[owners] < falls]).tolist():
        own = slice(joined.link_ptr[owner], joined.link_ptr[owner + 1])
        order = np.argsort(key[own], kind="stable")
        joined.link_kind[own], joined.link_target[own] = joined.link_kind[own][order], joined.link_target[own][order]


def _without_unused(joined: Vocabulary, languages: list[str], outside: list[str]) -> Vocabulary:
    """The vocabulary with the languages and the URIs outside that its texts and links use."""
    tags = np.flatnonzero(np.bincount(joined.text_language, minlength=len(languages)))
    beyond = np.flatnonzero(joined.link_target >= len(joined))
    used, place = np.unique(joined.link_target[beyond], return_inverse=True)
    joined.link_target[beyond] = len(joined) + place
    packed, ends = packed_strings.pack([outside[number - len(joined)] for number in used.tolist()])
    languages_packed, language_ends = packed_strings.pack([languages[tag] for tag in tags.tolist()])
    return replace(
        joined,
        uris=np.concatenate([joined.uris, packed]),
        uri_ends=np.concatenate([joined.uri_ends, joined.uri_ends[-1] + ends[1:]]),
        languages_packed=languages_packed,
        language_ends=language_ends,
        text_language=np.searchsorted(tags, joined.text_language).astype(np.int32),
    )
