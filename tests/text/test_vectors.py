"""Texts with vectors: made beforehand, or by a model with encode(texts); the cache; what is refused."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

import labelwood
from labelwood import (
    Embedded,
    FormatError,
    HashingEncoder,
    LabelwoodError,
    LinearTree,
    LivingTree,
    OnlineForest,
    OnlineTree,
    TextClassifier,
    TfidfEncoder,
    VectorEncoder,
)
from labelwood.text.vector_cache import VectorCache

TEXTS = ["a cat sleeps", "the cat eats", "a dog barks", "the dog runs", "income tax", "tax law"] * 3
LABELS = [["cats"], ["cats"], ["dogs"], ["dogs"], ["law"], ["law"]] * 3
SIDES = {"cat": 0, "dog": 1, "tax": 2}


class Small:
    """A model of vectors of three numbers that counts what it is asked."""

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return np.array([[float(word in text) + 0.1 for word in SIDES] for text in texts])


def vectors(texts=TEXTS):
    return Small().encode(texts).astype(np.float32)


def fitted(texts=TEXTS, **parameters):
    given = {"classifier": LinearTree(n_jobs=1, random_state=0), **parameters}
    return TextClassifier(**given).fit(texts, LABELS)


def best(model, texts):
    return model.predict_topk(texts, k=1)[0].ravel().tolist()


def test_words_and_vectors_stand_side_by_side():
    model = fitted(Embedded(TEXTS, vectors()))
    rows = model.encode(Embedded(TEXTS[:4], vectors()[:4]))
    assert rows.width == model.vector_width == 3
    words = TfidfEncoder().fit(TEXTS).transform(TEXTS[:4])
    expected = sp.hstack([words, vectors()[:4]]).toarray()
    assert rows.to_scipy().toarray().tolist() == expected.tolist()
    unknown = Embedded(["xyz"] * 3, np.eye(3, dtype=np.float32))
    assert best(model, unknown) == ["cats", "dogs", "law"]


@pytest.mark.parametrize(
    "encoder", [None, TfidfEncoder(min_df=2), HashingEncoder(n_features=64), TfidfVectorizer(), VectorEncoder()]
)
def test_any_encoder_of_words(encoder, tmp_path):
    rows = Embedded(TEXTS, vectors())
    model = fitted(rows, encoder=encoder)
    assert best(model, rows) == [label for (label,) in LABELS]
    model.save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model")
    assert again.vector_width == 3
    np.testing.assert_array_equal(again.predict_topk(rows, k=2)[1], model.predict_topk(rows, k=2)[1])
    again.save(tmp_path / "again")
    for name in os.listdir(tmp_path / "model"):
        if name != "manifest.json":
            assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_another_process_reads_the_model(tmp_path):
    rows = Embedded(TEXTS, vectors())
    model = fitted(rows)
    model.save(tmp_path / "model")
    np.save(tmp_path / "vectors.npy", vectors())
    program = (
        "import sys, numpy as np, labelwood\n"
        "model = labelwood.load(sys.argv[1])\n"
        "rows = labelwood.Embedded(sys.argv[3:], np.load(sys.argv[2], mmap_mode='r'))\n"
        "sys.stdout.buffer.write(model.predict_topk(rows, k=2)[1].tobytes())\n"
    )
    words = [sys.executable, "-c", program, tmp_path / "model", tmp_path / "vectors.npy", *TEXTS]
    assert subprocess.run(words, check=True, capture_output=True).stdout == model.predict_topk(rows, k=2)[1].tobytes()


def test_an_object_with_encode_is_an_encoder():
    model = fitted(encoder=Small())
    assert best(model, ["cat", "dog", "tax"]) == ["cats", "dogs", "law"]
    made = fitted(Embedded(TEXTS, vectors()))
    np.testing.assert_array_equal(
        model.predict_topk(TEXTS, k=3)[1], made.predict_topk(Embedded(TEXTS, vectors()), k=3)[1]
    )
    assert model.vector_width == 0  # texts need no vector: the model makes it


def test_vectors_alone():
    model = fitted(encoder=VectorEncoder(Small(), word_encoder=None))
    assert model.encode(TEXTS).n_cols == 3
    assert best(model, TEXTS) == [label for (label,) in LABELS]


def test_every_text_is_encoded_once():
    small = Small()
    fitted(encoder=small)
    assert small.asked == TEXTS[:6]


def test_the_cache_spares_encoding(tmp_path):
    small, path = Small(), str(tmp_path / "cache.db")
    encoder = VectorEncoder(small, cache=path, name="small 1")
    first = fitted(encoder=encoder)
    asked = len(small.asked)
    second = fitted(encoder=encoder)
    assert len(small.asked) == asked == 6
    assert first.predict_topk(TEXTS)[1].tolist() == second.predict_topk(TEXTS)[1].tolist()
    best(second, ["a new dog"])
    assert small.asked[asked:] == ["a new dog"]
    other = Small()
    fitted(encoder=VectorEncoder(other, cache=path, name="small 2"))
    assert len(other.asked) == 6
    assert set(VectorCache(path, "small 2").read([*TEXTS, "a new dog"])) == set(TEXTS)


def test_the_cache_is_hardly_larger_than_its_vectors(tmp_path):
    kept = np.random.default_rng(0).random((1000, 384), np.float32)
    cache = VectorCache(tmp_path / "cache.db", "small 1")
    cache.write([f"text {row}" for row in range(1000)], kept)
    assert (tmp_path / "cache.db").stat().st_size < 1.2 * kept.nbytes
    np.testing.assert_array_equal(cache.read(["text 999"])["text 999"], kept[999])


def test_an_interrupted_encoding_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("labelwood.text.vectors._AT_ONCE", 2)

    class Interrupted(Small):
        def encode(self, texts):
            if self.asked:
                raise KeyboardInterrupt
            return super().encode(texts)

    path = str(tmp_path / "cache.db")
    with pytest.raises(KeyboardInterrupt):
        VectorEncoder(Interrupted(), cache=path, name="small").fit(TEXTS)
    rest = Small()
    VectorEncoder(rest, cache=path, name="small").fit(TEXTS)
    assert rest.asked == TEXTS[2:6]


def test_a_file_that_is_no_cache_is_refused(tmp_path):
    path = tmp_path / "cache.db"
    path.write_text("something else, long enough to be looked at" * 30)
    with pytest.raises(FormatError, match="is no cache of vectors"):
        VectorEncoder(Small(), cache=str(path), name="small").fit(TEXTS)
    with pytest.raises(FormatError, match="cannot be opened"):
        VectorEncoder(Small(), cache=str(tmp_path / "none" / "cache.db"), name="small").fit(TEXTS)
    with pytest.raises(LabelwoodError, match="a cache needs name"):
        VectorEncoder(Small(), cache=str(tmp_path / "other.db")).fit(TEXTS)


def test_progress_reaches_the_end(monkeypatch):
    monkeypatch.setattr("labelwood.text.vectors._AT_ONCE", 2)
    told = []
    VectorEncoder(Small()).fit_encode(TEXTS, progress=told.append)
    assert told == [333333, 666666, 1000000]


def test_a_loaded_model_takes_the_model_of_vectors_back(tmp_path):
    fitted(encoder=VectorEncoder(Small(), name="small 1")).save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model")
    with pytest.raises(LabelwoodError, match="must come with its vector of small 1") as refused:
        again.predict_topk(["cat"])
    assert "\n" not in str(refused.value)
    again.encoder_.model = Small()
    assert best(again, ["cat"]) == ["cats"]


def test_clones_share_the_model_of_vectors():
    small = Small()
    model = TextClassifier(encoder=VectorEncoder(small, word_encoder=TfidfEncoder(min_df=2)))
    copied = clone(model)
    assert copied.encoder.model is small
    copied.set_params(encoder__word_encoder__min_df=3)
    assert (copied.encoder.word_encoder.min_df, model.encoder.word_encoder.min_df) == (3, 2)


def test_pickle():
    model = fitted(Embedded(TEXTS, vectors()))
    again = pickle.loads(pickle.dumps(model))
    rows = Embedded(TEXTS, vectors())
    assert again.predict_topk(rows)[1].tolist() == model.predict_topk(rows)[1].tolist()


def test_label_texts_count_by_their_words():
    model = TextClassifier(LinearTree(n_jobs=1)).fit(
        Embedded(TEXTS, vectors()), LABELS, label_texts={"birds": "a singing parrot"}
    )
    row = Embedded(["parrot"], np.zeros((1, 3), np.float32))
    assert best(model, row) == ["birds"]


@pytest.mark.parametrize("cls", [OnlineTree, OnlineForest, LivingTree])
@pytest.mark.parametrize("encoder", [HashingEncoder(n_features=64), TfidfEncoder()])
def test_a_stream_of_texts_with_vectors(cls, encoder, tmp_path):
    model = TextClassifier(cls(n_jobs=1, random_state=0), encoder)
    rows = Embedded(TEXTS * 3, np.tile(vectors(), (3, 1)))
    for _ in range(3):
        model.partial_fit(rows, LABELS * 3)
    model.save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model").partial_fit(rows, LABELS * 3)
    unknown = Embedded(["xyz"] * 3, np.eye(3))
    assert best(model, unknown) == best(again, unknown) == ["cats", "dogs", "law"]


def test_fields(tmp_path):
    records = [{"title": text, "body": "nothing"} for text in TEXTS]
    model = fitted(Embedded(records, vectors()), fields={"title": 2.0, "body": 1.0})
    assert model.field_names == ("title", "body")
    assert best(model, Embedded(records, vectors())) == [label for (label,) in LABELS]
    small = Small()
    fitted(records, encoder=VectorEncoder(small), fields={"title": 2.0, "body": 1.0})
    assert small.asked[0] == "a cat sleeps\nnothing"
    with pytest.raises(LabelwoodError, match="fields need an encoder of words"):
        fitted(records, encoder=VectorEncoder(small, word_encoder=None), fields={"title": 1.0})


def test_explanations_name_words_and_places_in_the_vector():
    model = fitted(Embedded(TEXTS, vectors()))
    told = model.explain(Embedded(["a cat"], vectors(["a cat"])), 1, n_features=None)[0]
    steps = told.suggestions[0].paths[0].steps
    names = {one.name for step in steps for one in step.contributions}
    assert {"cat", "vector[0]"} <= names


@pytest.mark.parametrize("made", [np.asfortranarray, lambda E: E[::-1][::-1], lambda E: np.repeat(E, 2, 0)[::2]])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int64])
def test_other_layouts_and_types_give_the_same_answers(made, dtype):
    whole = (4 * vectors()).round().astype(dtype)
    expected = fitted(Embedded(TEXTS, whole.astype(np.float32)))
    model = fitted(Embedded(TEXTS, made(whole)))
    rows = Embedded(TEXTS, made(whole))
    assert model.predict_topk(rows)[1].tolist() == expected.predict_topk(rows)[1].tolist()


@pytest.mark.parametrize("label_texts", [None, {"birds": "a singing parrot"}])
def test_bfloat16_gives_the_answers_of_the_same_numbers_in_float32(label_texts):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need the package ml_dtypes")
    short = vectors().astype(ml_dtypes.bfloat16)
    answers = []
    for own in (short, short.astype(np.float32)):
        rows = Embedded(TEXTS, own)
        model = TextClassifier(LinearTree(n_jobs=1, random_state=0)).fit(rows, LABELS, label_texts=label_texts)
        explained = model.explain(rows[:2], 1)
        answers.append((model.predict_topk(rows, k=3)[1].tolist(), [one.suggestions[0].score for one in explained]))
    assert answers[0] == answers[1]


def bad(value):
    found = vectors()
    found[3, 1] = value
    return found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (bad(np.nan), "vectors must be finite"),
        (bad(np.inf), "vectors must be finite"),
        (bad(np.nan).astype(np.float64), "vectors must be finite"),
        (vectors()[:, :2], "vectors must have 3 columns; got 2"),
        (vectors()[:5], "every text must have one vector; got 18 texts and 5 vectors"),
        (vectors()[:, :0], "vectors must have at least one column; got 0"),
        (vectors()[:0], "every text must have one vector; got 18 texts and 0 vectors"),
        (vectors().ravel(), "vectors must be two-dimensional"),
        (vectors().astype(str)[:, :1], "vectors must have 3 columns"),
        (np.full((18, 3), "x"), "vectors must hold real numbers; got dtype <U1"),
        (vectors().astype(np.complex64), "vectors must hold real numbers; got dtype complex64"),
        ([[1.0], [2.0, 3.0]], "all rows must have the same length"),
    ],
)
def test_bad_vectors_are_refused_in_one_line(given, message):
    model = fitted(Embedded(TEXTS, vectors()))
    with pytest.raises(LabelwoodError) as refused:
        model.predict_topk(Embedded(TEXTS, given))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_vectors_for_a_model_without_are_refused():
    model = fitted()
    with pytest.raises(LabelwoodError, match="reads texts without vectors"):
        model.predict_topk(Embedded(TEXTS, vectors()))
    with_fields = fitted([{"title": text} for text in TEXTS], fields={"title": 1.0})
    with pytest.raises(LabelwoodError, match="reads texts without vectors"):
        with_fields.predict_topk(Embedded([{"title": "cat"}], vectors(["cat"])))


def test_no_rows():
    model = fitted(Embedded(TEXTS, vectors()))
    assert model.predict_topk(Embedded([], np.empty((0, 3))))[0].shape == (0, 5)
    with pytest.raises(LabelwoodError, match="at least one text with its vector"):
        TextClassifier().fit(Embedded([], np.empty((0, 3))), [])


class Wrong:
    def __init__(self, answer):
        self.answer = answer

    def encode(self, texts):
        return self.answer


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Wrong(np.ones((5, 3))), "model.encode must return one vector per text; got an array of shape (5, 3)"),
        (Wrong(np.ones((6, 0))), "model.encode must return one vector per text; got an array of shape (6, 0)"),
        (Wrong(np.full((6, 2), np.nan)), "model.encode: vectors must be finite"),
        (Wrong(np.ones(6)), "model.encode: vectors must be two-dimensional"),
    ],
)
def test_wrong_models_of_vectors(model, message):
    with pytest.raises(LabelwoodError) as refused:
        fitted(encoder=model)
    assert message in str(refused.value)


def test_wrong_encoders():
    for encoder in (object(), "tfidf", Small):
        with pytest.raises(LabelwoodError, match="encoder must be"):
            fitted(encoder=encoder)
    with pytest.raises(LabelwoodError, match="must have a method encode"):
        fitted(encoder=VectorEncoder(object()))
    with pytest.raises(LabelwoodError, match="word_encoder must be"):
        fitted(encoder=VectorEncoder(Small(), word_encoder="words"))


def test_a_damaged_width_is_refused(tmp_path):
    fitted(Embedded(TEXTS, vectors())).save(tmp_path / "model")
    np.save(tmp_path / "model" / "encoder.width.npy", np.array([0], np.int64))
    with pytest.raises(FormatError):
        labelwood.load(tmp_path / "model", verify=False)
