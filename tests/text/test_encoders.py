"""The encoders against scikit-learn's vectorizers and against the plain-Python twin."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import text as twin
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from labelwood import LabelwoodError, LinearTree, _core
from labelwood.text import HashingEncoder, TfidfEncoder

TEXTS = [
    "The cat sat on the mat; the CAT's mat! x y z",
    "Öljymäen yöllinen äänestys, Åbo: hyvää yötä ja öitä. HYVÄÄ YÖTÄ",
    "ΟΔΥΣΣΕΥΣ και ΟΔΟΣ, ΣΊΣΥΦΟΣ Σ ΑΣ' ΑΣΑ Σ.",
    "中文分词 没有 空格,标点。全角 123 12３",
    "emoji 😀😀 👩‍👩‍👧 flags 🇫🇮 and words😀glued",
    "cafe\u0301 nai\u0308ve e\u0301\u0302 क्षत्रिय हिन्दी",
    "İSTANBUL İ iİi ıI DŽ Džǅ ﬁ ß ẞ K Å",
    "under_score _x __ a_b 1_000 ² ½ Ⅷ ⅷ",
    "tabs\tand\n\nnewlines \u00a0\u2003 \x1c\x1d x\x00y \u200b zero",
    "",
    "   ",
    "a",
    "long " + "word" * 50 + " " + "äö" * 40 + " the the the",
    "\ud800 lone \udfff surrogates\ud83d",
]
OPTIONS = [
    {},
    {"sublinear_tf": True, "min_df": 2},
    {"ngram_range": (1, 3), "max_df": 0.5},
    {"ngram_range": (2, 2), "norm": "l1", "smooth_idf": False},
    {"max_features": 17},
    {"max_features": 9, "ngram_range": (1, 2), "min_df": 2},
    {"lowercase": False, "norm": None, "use_idf": False},
    {"binary": True},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char", "ngram_range": (4, 5), "min_df": 1},
    {"analyzer": "char_wb", "ngram_range": (1, 4)},
    {"analyzer": "char_wb", "ngram_range": (3, 5), "sublinear_tf": True},
    {"analyzer": "char_wb", "ngram_range": (6, 6), "lowercase": False},
]


def assert_same(ours, theirs):
    theirs.sort_indices()
    assert ours.shape == theirs.shape
    assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.data, theirs.data, atol=1e-6, rtol=1e-6)


def vectorizer(options):
    return TfidfVectorizer(**{"sublinear_tf": False, **options})


def encoder(options, n_jobs=1):
    return TfidfEncoder(**{"sublinear_tf": False, **options}, n_jobs=n_jobs)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_tfidf_is_that_of_scikit_learn(options):
    theirs, ours = vectorizer(options), encoder(options)
    assert_same(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert ours.vocabulary_ == theirs.vocabulary_
    unseen = [*TEXTS[::2], "unseen words and the cat", "ΟΔΟΣ"]
    assert_same(ours.transform(unseen), theirs.transform(unseen))


@pytest.mark.parametrize("pattern", [(1, r"(?u)\b\w+\b"), (3, r"(?u)\b\w{3,}\b")])
def test_token_length_is_a_token_pattern(pattern):
    length, regex = pattern
    ours = encoder({"token_length": length}).fit_transform(TEXTS)
    assert_same(ours, vectorizer({"token_pattern": regex}).fit_transform(TEXTS))


# Characters that tokenizers trip over, often, and any other ones.
tricky = st.sampled_from("ΣσςİıIiABab'.·\u0301\u0307\u00ad\u200d _019²Ⅷ\t\n\u2028\x1c\x00中😀ßẞÅK\u0345\u1f88ǅ")
# A Python with another version of Unicode than the kernel's tables knows other letters.
same_unicode = unicodedata.unidata_version == _core.unicode_properties()[0]
characters = st.characters() if same_unicode else st.characters(max_codepoint=0x7FF)
texts = st.lists(st.text(st.one_of(tricky, characters)), min_size=1, max_size=8)


@given(texts, st.sampled_from(OPTIONS[:4] + OPTIONS[6:]))
def test_any_text_gives_what_scikit_learn_gives(documents, options):
    documents = [*documents, "some words some words", "some other words"]
    options = {**options, "min_df": 1}
    assert_same(encoder(options).fit_transform(documents), vectorizer(options).fit_transform(documents))


@given(texts, st.sampled_from(["word", "char", "char_wb"]), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_kernels_are_the_twin(documents, analyzer, shortest, more, lowercase):
    documents = [*documents, "some words"]
    cut = {"analyzer": analyzer, "ngram_range": (shortest, shortest + more), "token_length": 1, "lowercase": lowercase}
    ours = TfidfEncoder(**cut, n_jobs=2)
    terms = [twin.cut_text(text, **cut) for text in documents]
    vocabulary = twin.learn_terms(terms, 1, len(documents))
    if not vocabulary:
        with pytest.raises(LabelwoodError, match="texts have no terms"):
            ours.fit(documents)
        return
    matrix = ours.fit_encode(documents)
    assert ours.get_feature_names_out().tolist() == vocabulary
    for row, counted in enumerate(terms):
        counts = twin.count_terms(counted, vocabulary)
        weights = twin.weigh(counts, scale=ours.idf_.tolist(), sublinear=True, binary=False, norm="l2")
        one = matrix.rows(row, row + 1)
        assert one.indices.tolist() == list(weights)
        np.testing.assert_allclose(one.data, list(weights.values()), rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alternate_sign": False, "norm": "l1"},
        {"n_features": 7, "norm": None},
        {"n_features": 1000, "ngram_range": (1, 2), "binary": True},
        {"analyzer": "char_wb", "ngram_range": (2, 4), "n_features": 50},
    ],
    ids=str,
)
def test_hashing_is_that_of_scikit_learn(options):
    documents = [text for text in TEXTS if "\ud800" not in text]  # scikit-learn cannot hash a lone surrogate
    theirs = HashingVectorizer(**options).transform(documents)
    assert_same(HashingEncoder(**options, n_jobs=1).transform(documents), theirs)


def many_texts():
    rng = np.random.default_rng(3)
    words = np.array([f"w{i}ä" if i % 7 == 0 else f"Word{i}" for i in range(5000)])
    return [" ".join(words[(rng.pareto(1.0, 400) * 5).astype(int) % 5000]) for _ in range(2000)]


def test_the_number_of_threads_changes_nothing():
    documents = many_texts()  # several pieces of work
    one, three = encoder({"ngram_range": (1, 2)}), encoder({"ngram_range": (1, 2)}, n_jobs=3)
    first, second = one.fit_encode(documents), three.fit_encode(documents)
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
        assert np.array_equal(getattr(one.encode(documents), name), getattr(second, name))
        assert np.array_equal(getattr(three.encode(documents), name), getattr(second, name))
    assert one.vocabulary_ == three.vocabulary_
    assert_same(first.to_scipy(), vectorizer({"ngram_range": (1, 2)}).fit_transform(documents))


def test_rows_are_valid_and_in_order():
    encoder({}).fit_encode(many_texts()).check()
    HashingEncoder(n_jobs=2).encode(many_texts()).check()


def test_what_was_learnt_survives_as_arrays():
    fitted = encoder({"ngram_range": (1, 2)}).fit(TEXTS)
    again = encoder({"ngram_range": (1, 2)}).restore(fitted.state())
    assert_same(again.transform(TEXTS), fitted.transform(TEXTS))
    assert again.vocabulary_ == fitted.vocabulary_


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("vocabulary.offsets", lambda a: a + 1),
        ("vocabulary.offsets", lambda a: a[::-1].copy()),
        ("vocabulary.offsets", lambda a: a[:0]),
        ("vocabulary.offsets", lambda a: a.astype(np.int32)),
        ("vocabulary.utf8", lambda a: a[:-1]),
        ("idf", lambda a: a[:-1]),
        ("idf", lambda a: a * np.nan),
    ],
)
def test_damaged_arrays_are_refused(name, damage):
    arrays = encoder({}).fit(TEXTS).state()
    with pytest.raises(LabelwoodError, match="damaged"):
        encoder({}).restore({**arrays, name: damage(arrays[name])})


def test_a_vocabulary_with_a_term_twice_is_refused():
    arrays = encoder({}).fit(["aa bb"]).state()
    arrays["vocabulary.utf8"] = np.frombuffer(b"aaaa", np.uint8)
    with pytest.raises(LabelwoodError, match="twice"):
        encoder({}).restore(arrays).transform(["aa"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngram_range": (2, 1)}, r"TfidfEncoder: ngram_range must be two integers.*got \(2, 1\)"),
        ({"ngram_range": (1,)}, "ngram_range must be"),
        ({"analyzer": "words"}, "analyzer must be one of 'word', 'char', 'char_wb'; got 'words'"),
        ({"min_df": 1.5}, "min_df must be an integer or a share"),
        ({"min_df": 5, "max_df": 2}, "max_df must not be below min_df"),
        ({"min_df": 14}, "the 14 texts have no terms"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_wrong_parameters_are_one_sentence(options, message):
    with pytest.raises(LabelwoodError, match=message):
        TfidfEncoder(**options).fit(TEXTS)


@pytest.mark.parametrize(
    ("given_texts", "message"),
    [
        ("one text", "texts must be a list of strings; got str"),
        (["fine", None], "the one at position 1 is missing"),
        ([b"bytes"], "got bytes at position 0"),
        (7, "got int"),
    ],
)
def test_wrong_texts_are_one_sentence(given_texts, message):
    with pytest.raises(LabelwoodError, match=message):
        TfidfEncoder().fit(given_texts)


def test_it_is_a_transformer():
    assert clone(TfidfEncoder(min_df=3)).get_params()["min_df"] == 3
    with pytest.raises(NotFittedError):
        TfidfEncoder().transform(TEXTS)
    labels = [["cat"], ["fi"], ["el"], ["zh"]]
    pipeline = make_pipeline(TfidfEncoder(), LinearTree(n_jobs=1))
    predicted = pipeline.fit(TEXTS[:4], labels).predict(["hyvää yötä"], k=1)
    assert pipeline[-1].classes_[predicted.indices].tolist() == ["fi"]
    again = TfidfEncoder().fit(TEXTS[:2])
    again.transform(TEXTS)
    assert again.fit(TEXTS[2:4]).transform(["中文分词"]).nnz == 1  # nothing of the first fit is left


def test_a_table_of_one_column_gives_its_texts():
    """As ``df[["text"]]`` of pandas does; iterating over such a table gives the names of its columns."""
    column = np.array([["one two"], ["two three"], ["three"]], dtype=object)
    expected = TfidfEncoder().fit_transform(["one two", "two three", "three"])
    np.testing.assert_array_equal(TfidfEncoder().fit_transform(column).toarray(), expected.toarray())
    with pytest.raises(LabelwoodError, match="texts must be one column of a table; got 2 columns"):
        TfidfEncoder().fit(np.hstack([column, column]))


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_texts_are_refused_with_the_cure(missing):
    with pytest.raises(LabelwoodError, match=r"position 1 is missing \((nan|None)\)\. Fill missing texts with ''"):
        TfidfEncoder().fit(["a dog", missing])
