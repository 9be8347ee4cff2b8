"""The packed vocabulary: packing, looking up, replacing, and arrays from damaged files."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood.errors import FormatError
from labelwood.vocabulary import Concept, Vocabulary
from labelwood.vocabulary.concept import BROADER, PREFERRED, REPLACED_BY, Link, Text
from labelwood.vocabulary.hierarchy import ancestors, in_cycles, parents_of

EX = "http://example.org/"


def test_every_concept_comes_back(animals):
    by_uri = {concept.uri: concept for concept in animals}
    cat = by_uri[EX + "cat"]
    assert cat.named("fi") == "kissa"
    assert cat.linked(BROADER) == [EX + "animal"]
    assert by_uri[EX + "fish"].linked(BROADER) == ["http://elsewhere.org/being"]
    assert by_uri[EX + "beast"].deprecated
    assert Vocabulary.of(animals) == animals
    assert len(animals) == 7
    assert animals != Vocabulary.of(list(animals)[:-1])


def test_names_fall_back_to_the_nearest_language(animals):
    cat, fish = animals.find(EX + "cat"), animals.find(EX + "fish")
    assert animals.name(cat, "fi") == "kissa"
    assert animals.name(cat, "en-gb") == "cat"
    assert animals.name(cat, "sv") == "cat"  # English has the most names
    assert animals.name(fish, "en") == "kala"
    assert Vocabulary.of([Concept("x")]).name(0) is None
    assert animals.name_languages == ["en", "fi"]


def test_replacements_are_followed_to_a_current_concept(animals):
    dog, whelp = animals.find(EX + "dog"), animals.find(EX + "whelp")
    assert animals.current(dog) == dog
    assert animals.current(whelp) == dog
    assert animals.current(animals.find(EX + "beast")) is None
    loop = Vocabulary.of(
        [Concept("a", (), (Link(REPLACED_BY, "b"),), True), Concept("b", (), (Link(REPLACED_BY, "a"),), True)]
    )
    assert loop.current(0) is None
    split = Vocabulary.of(
        [Concept("a", (), (Link(REPLACED_BY, "b"), Link(REPLACED_BY, "c")), True), Concept("b"), Concept("c")]
    )
    assert split.current(0) is None, "two replacements leave the choice open"


def test_labels_are_resolved_by_uri_and_by_name(animals):
    cat = animals.find(EX + "cat")
    for label in (EX + "cat", f"<{EX}cat>", "cat", "CAT", "kissa"):
        assert animals.resolve(label) == cat
    assert animals.resolve("hound") is None, "a deprecated concept is found by its URI only"
    assert animals.resolve("nothing") is None
    twice = Vocabulary.of([Concept("a", (Text(PREFERRED, "", "x"),)), Concept("b", (Text(PREFERRED, "", "X"),))])
    assert twice.resolve("x") is None, "two concepts have this name"
    assert Vocabulary.of([Concept("17")]).resolve(17) == 0


def test_label_texts_are_names_of_current_concepts(animals):
    texts = animals.label_texts()
    assert texts[EX + "cat"] == ["cat", "kissa", "domestic | cat", "pussy\\cat"]
    assert EX + "hound" not in texts
    assert animals.label_texts("fi")[EX + "cat"] == ["kissa"]
    assert EX + "dog" not in animals.label_texts("fi")


def test_cycles_and_ancestors():
    ring = Vocabulary.of(
        [Concept(x, (), (Link(BROADER, y),)) for x, y in ("ab", "bc", "ca", "da", "ee")] + [Concept("f")]
    )
    assert [ring.uri(one) for one in in_cycles(ring)] == ["a", "b", "c", "e"]
    above = ancestors(parents_of(ring), range(6), 8)
    rows = [above.indices[above.indptr[row] : above.indptr[row + 1]].tolist() for row in range(8)]
    assert rows == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2, 3], [4], [5], [], []]


def test_a_chain_of_a_hundred_thousand_concepts_is_walked_without_recursion():
    names = [f"{number:06d}" for number in range(100_000)]
    chain = [Concept(x, (), (Link(BROADER, y),)) for x, y in pairwise(names)]
    deep = Vocabulary.of([*chain, Concept(names[-1])])
    assert in_cycles(deep) == []
    assert ancestors(parents_of(deep), [0], len(deep)).nnz == 100_000


def test_a_uri_must_not_stand_twice():
    with pytest.raises(FormatError, match="'x' stands twice"):
        Vocabulary.of([Concept("x"), Concept("x")])


def test_arrays_come_back_from_a_model(animals):
    assert Vocabulary.restore(animals.arrays()) == animals
    assert Vocabulary.restore({"weights": np.zeros(1)}) is None
    arrays = animals.arrays()
    del arrays["vocabulary.texts"]
    with pytest.raises(FormatError, match="texts is missing"):
        Vocabulary.restore(arrays)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_arrays_are_refused_or_harmless(data):
    from animals import ANIMALS

    arrays = Vocabulary.of(ANIMALS).arrays()
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name].copy()
    action = data.draw(st.sampled_from(["value", "cut", "grow", "type", "shape", "empty"]))
    if action == "value" and len(array):
        place = data.draw(st.integers(0, len(array) - 1))
        info = np.iinfo(array.dtype)
        array[place] = data.draw(st.integers(int(info.min), int(info.max)))
    elif action == "cut":
        array = array[: data.draw(st.integers(0, len(array)))]
    elif action == "grow":
        array = np.concatenate([array, array[:1]])
    elif action == "type":
        array = array.astype(data.draw(st.sampled_from([np.float32, np.int64, np.int32, np.uint8, np.bool_])))
    elif action == "shape":
        array = array.reshape(1, -1)
    else:
        array = array[:0]
    try:
        found = Vocabulary.restore({**arrays, name: array})
        used = [*found]
        for number, concept in enumerate(used):
            found.name(number, "en")
            found.current(number)
            found.find(concept.uri)
        found.label_texts()
        in_cycles(found)
    except FormatError:
        pass
