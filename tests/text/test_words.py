"""Stems, lemmas, stop words, accents and languages: against scikit-learn with the same packages, and the errors."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from labelwood import LabelwoodError, LinearTree, TextClassifier, load
from labelwood.cli import main
from labelwood.text import HashingEncoder, TfidfEncoder

TEXTS = [
    "Kirjastojen kokoelmat ja kirjaston asiakkaat",
    "Metsien hoito, metsissä kasvavat marjat",
    "Libraries and their running costs; the library runs",
    "ÄÄNESTYKSET äänestyksissä İstanbul ﬁ ² _x_ 12 a",
    "",
]
WORDS = ["kirjastojen", "kirjastossa", "metsät", "metsien", "ja", "äänestys", "running", "x", "²", "İ", "Äiti", "œuvre"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=6)


def stemming(language, ngram_range=(1, 1)):
    """scikit-learn's analyser with PyStemmer in it."""
    stemmer = pytest.importorskip("Stemmer").Stemmer(language)
    tokenize = TfidfVectorizer().build_tokenizer()

    def analyse(text):
        words = stemmer.stemWords(tokenize(text.lower()))
        shortest, longest = ngram_range
        return [" ".join(words[i : i + n]) for n in range(shortest, longest + 1) for i in range(len(words) - n + 1)]

    return analyse


def assert_same(ours, theirs):
    theirs.sort_indices()
    assert ours.shape == theirs.shape
    assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.data, theirs.data, atol=1e-6, rtol=1e-6)


@given(texts, st.sampled_from([(1, 1), (1, 2), (2, 3)]), st.sampled_from([("fi", "finnish"), ("en", "english")]))
def test_stems_are_those_of_an_analyser_with_pystemmer(documents, span, language):
    documents = [*documents, *TEXTS]
    ours = TfidfEncoder(words="stems", language=language[0], ngram_range=span, sublinear_tf=False, n_jobs=2)
    theirs = TfidfVectorizer(analyzer=stemming(language[1], span))
    assert_same(ours.fit_transform(documents), theirs.fit_transform(documents))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    unseen = ["kirjastoissa ja metsillä", *documents[:2]]
    assert_same(ours.transform(unseen), theirs.transform(unseen))


def test_hashed_stems():
    ours = HashingEncoder(words="stems", language="fi", n_features=256, n_jobs=1)
    theirs = HashingVectorizer(analyzer=stemming("finnish"), n_features=256)
    assert_same(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))
    named = ours.term_of(TEXTS[1])
    assert {named(column) for column in ours.encode(TEXTS[1:2]).indices.tolist()} >= {"mets"}


def test_lemmas():
    simplemma = pytest.importorskip("simplemma")
    encoder = TfidfEncoder(words="lemmas", language="fi", n_jobs=1).fit(TEXTS[:2])
    words = TfidfEncoder(n_jobs=1).fit(TEXTS[:2]).get_feature_names_out().tolist()
    assert encoder.get_feature_names_out().tolist() == sorted({simplemma.lemmatize(word, lang="fi") for word in words})
    assert "kirjasto" in encoder.vocabulary_


def test_stop_words_are_dropped_before_n_grams():
    pytest.importorskip("stop_words")
    encoder = TfidfEncoder(drop_stop_words=True, language="en", ngram_range=(1, 2), n_jobs=1)
    encoder.fit(["the cost of the library", "a b"])
    assert encoder.get_feature_names_out().tolist() == ["cost", "cost library", "library"]


@given(st.text(st.characters(categories=["L", "M"]), min_size=1))
def test_accents_are_folded_as_by_scikit_learn(word):
    from sklearn.feature_extraction.text import strip_accents_unicode

    encoder = TfidfEncoder(fold_accents=True, token_length=1, n_jobs=1).fit(["x", word])
    plain = TfidfEncoder(token_length=1, n_jobs=1).fit(["x", word]).get_feature_names_out().tolist()
    folded = {strip_accents_unicode(one) for one in plain} - {""}
    assert set(encoder.get_feature_names_out().tolist()) == folded
    assert all(not unicodedata.combining(mark) for term in folded for mark in term)


def test_each_text_is_stemmed_by_its_language():
    pytest.importorskip("py3langid")
    german = "Die Häuser der Städte und die Bibliotheken des Landes"
    english = "The houses of the cities and the libraries of the country were running"
    for language in ("de,en", "auto"):
        both = TfidfEncoder(words="stems", language=language, n_jobs=1).fit([german, english])
        alone = [TfidfEncoder(words="stems", language=own, n_jobs=1).fit([text]) for own, text in
                 (("de", german), ("en", english))]  # fmt: skip
        assert set(both.vocabulary_) == set(alone[0].vocabulary_) | set(alone[1].vocabulary_)
    fields = TfidfEncoder(words="stems", language="de,en", fields={"a": 1.0, "b": 1.0}, n_jobs=1)
    fields.fit([{"a": "Die Häuser", "b": "der Städte und die Bibliotheken des Landes"}, {"b": english}])
    assert set(fields.vocabulary_) == set(both.vocabulary_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": "stems"}, "words must come with a language: a code such as 'fi'.*got 'stems' without one"),
        ({"words": "stems", "language": "xx"}, "language must be auto or different codes among.*got 'xx'"),
        ({"words": "stems", "language": "de,de"}, "different codes"),
        ({"words": "stems", "language": "auto,de"}, "different codes"),
        ({"words": "roots"}, "words must be one of 'forms', 'stems', 'lemmas'"),
        (
            {"language": "fi"},
            "language must be None without words='stems', words='lemmas' or drop_stop_words; got 'fi'",
        ),
        ({"words": "stems", "language": "fi", "analyzer": "char_wb"}, "analyzer must be 'word'"),
        ({"words": "lemmas", "language": "yi"}, "simplemma has no lemmas"),
        ({"drop_stop_words": True, "language": "yi"}, "stop-words has no list"),
    ],
)
def test_bad_options_are_refused(options, message):
    for package in ("Stemmer", "simplemma", "stop_words"):
        pytest.importorskip(package)
    with pytest.raises(LabelwoodError, match=message):
        TfidfEncoder(**options, n_jobs=1).fit(TEXTS)


def test_a_model_of_stems_needs_the_package_where_it_predicts(tmp_path, monkeypatch):
    pytest.importorskip("Stemmer")
    model = TextClassifier(LinearTree(n_jobs=1), TfidfEncoder(words="stems", language="fi", n_jobs=1))
    model.fit(TEXTS[:2] * 3, [["kirjastot"], ["metsät"]] * 3).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict_topk(["metsissä"], 1)[0].tolist() == [["metsät"]]
    assert again.predict_topk(["metsissä"], 1)[1].tolist() == model.predict_topk(["metsissä"], 1)[1].tolist()
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(LabelwoodError, match=r"words='stems' needs PyStemmer: pip install 'labelwood\[words\]'"):
        load(tmp_path / "model").predict_topk(["metsissä"], 1)


@pytest.mark.parametrize(
    ("package", "options"),
    [
        ("simplemma", {"words": "lemmas", "language": "fi"}),
        ("stop_words", {"drop_stop_words": True, "language": "sv"}),
        ("py3langid.langid", {"words": "stems", "language": "da,sv"}),
    ],
)
def test_a_missing_package_is_named(monkeypatch, package, options):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LabelwoodError, match=r"needs .*pip install 'labelwood\[words\]'"):
        TfidfEncoder(**options, n_jobs=1).fit(TEXTS)


def test_the_command_line_trains_with_stems(tmp_path, capsys):
    pytest.importorskip("Stemmer")
    (tmp_path / "docs.csv").write_text("text,labels\n" + "kirjastojen kokoelmat,kirjastot\nmetsien hoito,metsät\n" * 4)
    told = ["train", str(tmp_path / "docs.csv"), "-o", str(tmp_path / "m"), "--words", "stems"]
    assert main(told) == 2
    assert "--words must come with a language: a code such as" in capsys.readouterr().err
    assert main([*told, "--language", "fi"]) == 0
    assert main(["predict", str(tmp_path / "m"), "metsissä", "-k", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("metsät:")
