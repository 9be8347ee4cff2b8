"""Every method keeps a vocabulary: saved, loaded, updated without training, replaced and retired labels left out."""

from dataclasses import replace

import numpy as np
import pytest
from animals import ANIMALS, EX

from labelwood import METHODS, load
from labelwood.errors import FormatError, LabelwoodError
from labelwood.vocabulary import Concept, Vocabulary
from labelwood.vocabulary.concept import ALTERNATIVE, PREFERRED, REPLACED_BY, Link, Text
from labelwood.vocabulary.update import update_model

LABELS = [EX + name for name in ("cat", "dog", "hound", "fish", "beast", "other")]


def rows(n_rows=60):
    """Rows of which each label has a column of its own."""
    random = np.random.default_rng(0)
    labels = np.arange(n_rows) % len(LABELS)
    X = 0.05 * random.random((n_rows, 12), dtype=np.float32)
    X[np.arange(n_rows), labels] += 1
    return X, [[LABELS[label]] for label in labels]


def new_version():
    """Fish are deprecated without a replacement; dogs and cats are replaced, cats by what is a label already."""
    old = {concept.uri: concept for concept in ANIMALS}
    changed = {
        EX + "fish": Concept(EX + "fish", old[EX + "fish"].texts, (), True),
        EX + "dog": Concept(EX + "dog", (), (Link(REPLACED_BY, EX + "canine"),), True),
        EX + "canine": Concept(EX + "canine", (Text(PREFERRED, "en", "canine"),)),
        EX + "cat": Concept(EX + "cat", (), (Link(REPLACED_BY, EX + "other"),), True),
        EX + "other": Concept(EX + "other", (Text(PREFERRED, "en", "others"),)),
    }
    return Vocabulary.of({**old, **changed}.values())


@pytest.mark.parametrize("method", METHODS)
def test_a_vocabulary_is_kept_and_updated(method, tmp_path):
    X, Y = rows()
    vocabulary = Vocabulary.of(ANIMALS)
    model = METHODS[method](n_jobs=1).fit(X, Y, vocabulary=vocabulary)
    assert model.trained_["vocabulary"] == {"replaced": 1, "left_out": 1, "named": 0, "unknown": 1}
    assert set(model.classes_) == {EX + "cat", EX + "dog", EX + "fish", EX + "other"}
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.vocabulary_ == vocabulary
    before = model.predict_topk(X, k=4)
    again = loaded.predict_topk(X, k=4)
    assert again[0].tolist() == before[0].tolist()
    changes = update_model(tmp_path / "model", new_version())
    assert (changes.labels_renamed, changes.labels_merged, changes.labels_retired) == (1, 1, 1)
    updated = load(tmp_path / "model")
    labels, scores = updated.predict_topk(X, k=4)
    shown = {label for label in labels.ravel().tolist() if label is not None}
    assert shown <= {EX + "canine", EX + "other"}
    assert EX + "canine" in shown
    assert (np.diff(scores, axis=1) <= 0).all()
    loaded.use_vocabulary(new_version())  # in memory, the same
    assert loaded.predict_topk(X, k=4)[0].tolist() == labels.tolist()
    truth = updated.encode_labels([[EX + "hound"], [EX + "cat"], [EX + "fish"]])
    assert [updated.classes_[label] for label in truth.indices] == [EX + "canine", EX + "other"]


@pytest.mark.parametrize("new_language", [False, True])
def test_an_update_names_what_changed_and_writes_no_classifier(new_language, tmp_path):
    X, Y = rows()
    METHODS["linear-tree"](n_jobs=1).fit(X, Y, vocabulary=Vocabulary.of(ANIMALS)).save(tmp_path / "model")
    files = {file.name: file.stat().st_ino for file in (tmp_path / "model").iterdir()}
    concepts = {concept.uri: concept for concept in ANIMALS}
    cat, mark = concepts[EX + "cat"], Text(ALTERNATIVE, "aa" if new_language else "en", "mog")
    concepts[EX + "cat"] = replace(cat, texts=(*cat.texts, mark))  # another name, the same preferred one
    concepts[EX + "dog"] = replace(concepts[EX + "dog"], texts=(Text(PREFERRED, "en", "hound dog"),))
    concepts[EX + "whale"] = Concept(EX + "whale", (Text(PREFERRED, "en", "whale"),))
    changes = update_model(tmp_path / "model", Vocabulary.of(concepts.values()))
    assert changes == ([EX + "whale"], [EX + "dog"], [], 0, 0, 0)
    written = {file.name for file in (tmp_path / "model").iterdir() if file.stat().st_ino != files.get(file.name)}
    assert written
    assert not [name for name in written if name.startswith("tree0.")]
    del concepts[EX + "whale"]
    assert update_model(tmp_path / "model", Vocabulary.of(concepts.values())).deprecated == [EX + "whale"]


def test_names_become_uris_and_columns_stay():
    X, _ = rows(12)
    model = METHODS["linear-tree"](n_jobs=1).fit(X, [["Cat"], ["koira"]] * 6, vocabulary=Vocabulary.of(ANIMALS))
    assert set(model.classes_) == {EX + "cat", "koira"}
    columns = METHODS["linear-tree"](n_jobs=1).fit(X, np.eye(12), vocabulary=Vocabulary.of(ANIMALS))
    assert columns.predict_topk(X[:1], k=1)[0].dtype.kind == "i"


def test_a_vocabulary_that_leaves_no_label_is_refused():
    X, _ = rows(4)
    with pytest.raises(LabelwoodError):
        METHODS["linear-tree"](n_jobs=1).fit(X, [[EX + "beast"]] * 4, vocabulary=Vocabulary.of(ANIMALS))


def test_a_damaged_vocabulary_of_a_model_is_refused(tmp_path):
    from labelwood.storage.model_directory import read_model, write_model

    X, Y = rows(12)
    METHODS["linear-tree"](n_jobs=1).fit(X, Y, vocabulary=Vocabulary.of(ANIMALS)).save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    wrong = {**arrays, "vocabulary.link_target": arrays["vocabulary.link_target"] + 1000}
    write_model(tmp_path / "wrong", {name: manifest[name] for name in manifest if name != "files"}, wrong)
    with pytest.raises(FormatError, match="a link leads nowhere"):
        load(tmp_path / "wrong")
