"""A newer vocabulary for a saved model, without learning anything again.

Only those arrays of the vocabulary and of the label names are written that change; the other files of the model are
linked.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

from labelwood.errors import LabelwoodError
from labelwood.label_names import PREFIX as LABEL_NAMES
from labelwood.label_names import LabelNames
from labelwood.storage.model_directory import change_model, read_model
from labelwood.vocabulary.changes import with_changes
from labelwood.vocabulary.concept import PREFERRED, Concept
from labelwood.vocabulary.current_labels import moved_ids, renames
from labelwood.vocabulary.vocabulary import PREFIX, Vocabulary


class Changes(NamedTuple):
    """What an update changed: concepts by their URIs, and the numbers of labels of the model that it touched."""

    added: list[str]
    renamed: list[str]
    deprecated: list[str]
    labels_renamed: int
    labels_merged: int
    labels_retired: int


def update_model(path: str | os.PathLike[str], new: Vocabulary, *, only_changes: bool = False) -> Changes:
    """Give a saved model a newer vocabulary.

    Concepts that the newer vocabulary lacks count as deprecated, unless ``only_changes`` says that it holds only the
    concepts that are new or other than before: then they stay as they are. A label of a replaced concept takes over the
    new URI, or counts for it if it is a label already; a label of a concept that is deprecated without a replacement is
    not suggested any more. Added concepts are known by name; the model suggests them once it has learned rows with
    them.
    """
    manifest, arrays = read_model(path, verify=False)
    names = LabelNames.restore(manifest["labels"], arrays)
    if names.kind == "ids":
        raise LabelwoodError(f"{path}: the labels are columns without names; a vocabulary needs names or URIs")
    old = Vocabulary.restore(arrays) or Vocabulary.of([])
    current = _numbers(new)
    if only_changes:
        known = {uri: number for uri in current if (number := old.find(uri)) is not None}
        whole = with_changes(old, new)
    else:
        known = _numbers(old)
        gone = [replace(old.concept(number), deprecated=True) for uri, number in known.items() if uri not in current]
        whole = Vocabulary.of([*new, *gone]) if gone else new
    names.vocabulary = old
    before = moved_ids(names)
    renamed = renames(names, whole)
    after = names.renamed(renamed)
    after.vocabulary = whole
    moved = {label: target for label, target in moved_ids(after).items() if before.get(label) != target}
    facts, label_arrays = after.state()
    change_model(
        path, {**manifest, "labels": facts}, {**whole.arrays(), **label_arrays}, instead_of=(PREFIX, LABEL_NAMES)
    )
    is_deprecated = new.deprecated.tolist()
    return Changes(
        added=[uri for uri, number in current.items() if uri not in known and not is_deprecated[number]],
        renamed=_renamed(old, new, known, current),
        deprecated=[
            uri
            for uri, number in known.items()
            if not old.deprecated[number] and (uri not in current or is_deprecated[current[uri]])
        ],
        labels_renamed=len(renamed),
        labels_merged=sum(target >= 0 for target in moved.values()),
        labels_retired=sum(target < 0 for target in moved.values()),
    )


def _numbers(vocabulary: Vocabulary) -> dict[str, int]:
    return {uri: number for number, uri in enumerate(vocabulary.uris_of(range(len(vocabulary))))}


def _renamed(old: Vocabulary, new: Vocabulary, known: dict[str, int], current: dict[str, int]) -> list[str]:
    """The concepts with other preferred names. Concepts whose packed texts are the same need no closer look."""
    same_languages = old.languages == new.languages
    before, after = old.packed_texts(), new.packed_texts()
    return [
        uri
        for uri, number in current.items()
        if uri in known
        and not (same_languages and before(known[uri]) == after(number))
        and _preferred(old.concept(known[uri])) != _preferred(new.concept(number))
    ]


def _preferred(concept: Concept) -> list[tuple[str, str]]:
    return [(text.language, text.text) for text in concept.texts if text.kind == PREFERRED]
