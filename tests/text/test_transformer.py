"""Transformers of scikit-learn as encoders, and the vectorizers that are saved as encoders of this library."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union

from labelwood import HashingEncoder, LabelwoodError, TfidfEncoder
from labelwood.text import as_encoder

TEXTS = [
    "The cat, the dog and the DOG; a cat.",
    "Straße und Straßenbahn, straße",
    "1 22 333 a bb a_b the",
    "é e\u0301 ΣΊΣΥΦΟΣ naïve cat",
    "",
    "dog-days & cat-nights: dog days",
]
UNSEEN = ["the cat of the straße", "nothing known here", "", "a_b 22 e\u0301"]
VOCABULARY = ["the", "dog", "cat", "22", "straße"]  # not in the order of the alphabet


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, norm="l1"),
        TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", use_idf=False, binary=True, lowercase=False),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), smooth_idf=False, max_features=20),
        TfidfVectorizer(stop_words=["the", "und"], norm=None),
        TfidfVectorizer(vocabulary=VOCABULARY),
        CountVectorizer(ngram_range=(1, 2)),
        CountVectorizer(binary=True, vocabulary=VOCABULARY),
        HashingVectorizer(n_features=64),
        HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None, analyzer="char", ngram_range=(2, 2)),
    ],
    ids=repr,
)
def test_a_vectorizer_has_an_equal_encoder(vectorizer):
    encoder = as_encoder(vectorizer)
    learnt = encoder.fit_encode(TEXTS)
    equal = encoder.native()
    assert isinstance(equal, HashingEncoder if isinstance(vectorizer, HashingVectorizer) else TfidfEncoder)
    for texts, expected in ((TEXTS, learnt), (UNSEEN, encoder.encode(UNSEEN))):
        found = equal.encode(texts)
        np.testing.assert_array_equal(found.to_scipy().toarray(), expected.to_scipy().toarray())
        plain = vectorizer.transform(texts)
        np.testing.assert_array_equal(plain.toarray().astype(np.float32), expected.to_scipy().toarray())
    column = int(equal.encode([TEXTS[0]]).indices[0])
    assert encoder.term_of(TEXTS[0])(column) == equal.term_of(TEXTS[0])(column) is not None


@pytest.mark.parametrize(
    "transformer",
    [
        TfidfVectorizer(strip_accents="unicode"),
        TfidfVectorizer(stop_words=["the"], ngram_range=(1, 2)),  # pairs of words reach across a stop word
        HashingVectorizer(stop_words=["the"]),
        TfidfVectorizer(token_pattern=r"[a-z]+"),
        TfidfVectorizer(tokenizer=str.split, token_pattern=None),
        TfidfVectorizer(analyzer=str.split),
        TfidfVectorizer(dtype=np.float32),
        make_pipeline(CountVectorizer(), TfidfTransformer()),
        make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0)),
        make_union(TfidfVectorizer(), CountVectorizer(analyzer="char")),
    ],
    ids=repr,
)
def test_other_transformers_encode_and_cannot_be_saved(transformer):
    encoder = as_encoder(transformer)
    learnt = encoder.fit_encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS).to_scipy().toarray(), learnt.to_scipy().toarray(), atol=1e-6)
    with pytest.raises(LabelwoodError, match=f"with this {type(transformer).__name__} cannot be saved without pickle"):
        encoder.native()
    if hasattr(transformer, "get_feature_names_out"):
        assert encoder.term_of("")(0) == transformer.get_feature_names_out()[0]


class Lengths(TransformerMixin, BaseEstimator):
    """A transformer without names of its columns."""

    def fit(self, texts, y=None):
        return self

    def transform(self, texts):
        return np.array([[len(text), 1] for text in texts], np.float64)


class Bare:
    """A transformer that has fit and transform and nothing else."""

    def fit(self, texts):
        return self

    def transform(self, texts):
        return Lengths().transform(texts)


@pytest.mark.parametrize("transformer", [Lengths(), Bare()], ids=["lengths", "bare"])
def test_a_transformer_of_the_user(transformer):
    encoder = as_encoder(transformer)
    assert encoder.fit_encode(["a", "bcd"]).to_scipy().toarray().tolist() == [[1, 1], [3, 1]]
    assert encoder.term_of("a")(0) is None


@pytest.mark.parametrize("wrong", ["tfidf", TfidfVectorizer, 3])
def test_what_is_no_transformer_is_refused(wrong):
    with pytest.raises(LabelwoodError, match="encoder must be a TfidfEncoder, a HashingEncoder, a transformer"):
        as_encoder(wrong)


@pytest.mark.parametrize("method", ["fit_encode", "encode"])
def test_a_transformer_gets_nothing_but_strings(method):
    encoder = as_encoder(TfidfVectorizer().fit(TEXTS))
    with pytest.raises(LabelwoodError, match="TfidfVectorizer: texts must be a list of strings; got str"):
        getattr(encoder, method)("a text")
    with pytest.raises(LabelwoodError, match="every text must be a string; got int at position 1"):
        getattr(encoder, method)(["a text", 3])
