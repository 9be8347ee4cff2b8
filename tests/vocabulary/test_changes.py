"""A vocabulary with changes is the vocabulary that packs all concepts anew, array by array."""

from dataclasses import fields

import numpy as np
from animals import ANIMALS, EX
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood import METHODS, load
from labelwood.vocabulary import Concept, Vocabulary
from labelwood.vocabulary.changes import with_changes
from labelwood.vocabulary.concept import LINK_KINDS, PREFERRED, REPLACED_BY, TEXT_KINDS, Link, Text
from labelwood.vocabulary.update import update_model

URIS = st.sampled_from(["a", "b", "ba", "c", "d", "é", "\U0001f408", "z"])
TEXTS = st.builds(
    Text, st.integers(0, len(TEXT_KINDS) - 1), st.sampled_from(["", "de", "fi"]), st.text("xyä", min_size=1)
)
LINKS = st.builds(Link, st.integers(0, len(LINK_KINDS) - 1), URIS)
CONCEPTS = st.lists(
    st.builds(
        Concept, URIS, st.lists(TEXTS, max_size=3).map(tuple), st.lists(LINKS, max_size=4).map(tuple), st.booleans()
    ),
    unique_by=lambda concept: concept.uri,
)


@given(CONCEPTS, CONCEPTS)
@settings(max_examples=400)
def test_changes_give_the_arrays_of_all_concepts_packed_anew(old, changes):
    wanted = Vocabulary.of(({one.uri: one for one in old} | {one.uri: one for one in changes}).values())
    found = with_changes(Vocabulary.of(old), Vocabulary.of(changes))
    found.check()
    for field in fields(wanted):
        mine, other = getattr(found, field.name), getattr(wanted, field.name)
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist(), field.name


def test_a_model_takes_changes_over_and_keeps_the_rest(tmp_path):
    X = np.eye(3, dtype=np.float32)
    labels = [EX + name for name in ("cat", "dog", "fish")]
    model = METHODS["linear-tree"](n_jobs=1).fit(X, [[label] for label in labels], vocabulary=Vocabulary.of(ANIMALS))
    model.save(tmp_path / "model")
    files = {file.name: file.stat().st_ino for file in (tmp_path / "model").iterdir()}
    changes = Vocabulary.of(
        [
            Concept(EX + "canine", (Text(PREFERRED, "en", "canine"),)),
            Concept(EX + "dog", (), (Link(REPLACED_BY, EX + "canine"),), True),
        ]
    )
    found = update_model(tmp_path / "model", changes, only_changes=True)
    assert found == ([EX + "canine"], [EX + "dog"], [EX + "dog"], 1, 0, 0)
    updated = load(tmp_path / "model")
    wanted = {one.uri: one for one in ANIMALS} | {one.uri: one for one in changes}
    assert updated.vocabulary_ == Vocabulary.of(wanted.values())
    assert updated.predict_topk(X, k=1)[0].ravel().tolist() == [EX + "cat", EX + "canine", EX + "fish"]
    changed = Vocabulary.of([Concept(EX + "cat", (Text(PREFERRED, "en", "feline"),), wanted[EX + "cat"].links)])
    before = {file.name: file.stat().st_ino for file in (tmp_path / "model").iterdir()}
    assert update_model(tmp_path / "model", changed, only_changes=True).renamed == [EX + "cat"]
    written = {file.name for file in (tmp_path / "model").iterdir() if file.stat().st_ino != before[file.name]}
    assert "vocabulary.texts.npy" in written
    assert not written & {"vocabulary.uris.npy", "vocabulary.link_target.npy", "label_names.utf8.npy"}
    assert not [name for name in written if name.startswith("tree0.")]
    assert files.keys() == before.keys()
