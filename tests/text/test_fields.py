"""Fields of records: the kernels against the twin, the checks, and what a plain text means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import text as twin

from labelwood import LabelwoodError, LinearTree, TextClassifier, load
from labelwood.text import HashingEncoder, TfidfEncoder

RECORDS = [
    {"title": "Tax law", "abstract": "The law of the income tax, and of other taxes"},
    {"title": "Cats and dogs", "abstract": "Dogs bark; cats do not bark"},
    {"title": "Income", "abstract": None},
    {"abstract": "law of cats"},
]
FIELDS = {"title": 2.0, "abstract": 1.0}
words = st.lists(st.sampled_from(["law", "tax", "cat", "dog", "ä", "x"]), max_size=6).map(" ".join)
records = st.lists(st.fixed_dictionaries({}, optional={"title": words, "abstract": words}), min_size=1, max_size=6)


def text_of(record, name):
    return record.get(name) or ""


def test_a_case_worked_by_hand():
    encoder = TfidfEncoder(fields={"title": 3, "abstract": 1}, use_idf=False, norm=None, n_jobs=1)
    rows = encoder.fit_transform([{"title": "tax law", "abstract": "law law cat"}, {"title": "cat"}])
    assert encoder.get_feature_names_out().tolist() == ["cat", "law", "tax"]
    expected = [[1, 3 + 1 + math.log(2), 3], [3, 0, 0]]
    np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-6)


@given(records, st.floats(0.1, 10), st.booleans(), st.integers(1, 2))
def test_kernels_are_the_twin(documents, weight, sublinear, threads):
    documents = [*documents, {"title": "some words", "abstract": "words"}, {"title": "law"}]
    documents = [one if any(one.values()) or one else {"title": ""} for one in documents]
    fields = {"title": weight, "abstract": {"weight": 1.0, "ngram_range": (1, 2)}}
    ours = TfidfEncoder(fields=fields, min_df=2, sublinear_tf=sublinear, token_length=1, n_jobs=threads)
    spans = {"title": (1, 1), "abstract": (1, 2)}
    common = {"analyzer": "word", "token_length": 1, "lowercase": True}
    cut = [
        [twin.cut_text(text_of(one, name), ngram_range=spans[name], **common) for name in spans] for one in documents
    ]
    vocabulary = twin.learn_terms([[*title, *abstract] for title, abstract in cut], 2, len(documents))
    if not vocabulary:
        with pytest.raises(LabelwoodError, match="no terms"):
            ours.fit(documents)
        return
    learnt, found = ours.fit_encode(documents), ours.encode(documents)
    assert ours.get_feature_names_out().tolist() == vocabulary
    for row, parts in enumerate(cut):
        counts = [twin.count_terms(terms, vocabulary) for terms in parts]
        plain = {"sublinear": sublinear, "binary": False, "norm": None, "scale": ours.idf_.tolist()}
        joined = twin.join_fields([twin.weigh(one, **plain) for one in counts], [weight, 1.0])
        length = math.sqrt(sum(value * value for value in joined.values())) or 1.0
        for rows in (learnt, found):
            one = rows.rows(row, row + 1)
            assert one.indices.tolist() == list(joined)
            np.testing.assert_allclose(one.data, [value / length for value in joined.values()], rtol=1e-5)


def test_documents_of_many_pieces_are_encoded_alike_by_any_number_of_threads():
    many = [{"title": f"word{i % 97} law", "abstract": f"law tax{i % 31} " * 40} for i in range(4000)]
    one, four = (TfidfEncoder(fields=FIELDS, min_df=3, n_jobs=threads) for threads in (1, 4))
    first, second = one.fit_encode(many), four.fit_encode(many)
    assert one.vocabulary_ == four.vocabulary_
    assert one.idf_.tolist() == four.idf_.tolist()
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_one_field_of_weight_one_is_a_plain_text():
    texts = [text_of(one, "abstract") for one in RECORDS]
    with_field = TfidfEncoder(fields={"abstract": 1.0}, n_jobs=1).fit_transform([{"abstract": one} for one in texts])
    assert (with_field != TfidfEncoder(n_jobs=1).fit_transform(texts)).nnz == 0


def test_a_plain_text_is_the_first_field_and_its_weight_does_not_matter():
    encoder = TfidfEncoder(fields=FIELDS, n_jobs=1).fit(RECORDS)
    same = encoder.transform(["law of cats", {"title": "law of cats"}, {"abstract": "law of cats"}]).toarray()
    np.testing.assert_allclose(same[0], same[1])
    np.testing.assert_allclose(same[0], same[2], rtol=1e-6)


def test_hashing_sums_the_fields():
    fields = {"title": 2.0, "abstract": 1.0}
    both = HashingEncoder(fields=fields, n_features=64, norm=None, n_jobs=1)
    plain = HashingEncoder(n_features=64, norm=None, n_jobs=1)
    title, abstract = (plain.transform([text_of(one, name) for one in RECORDS]) for name in fields)
    np.testing.assert_allclose(both.transform(RECORDS).toarray(), (2 * title + abstract).toarray())
    named = both.term_of(RECORDS[0])
    assert {named(column) for column in both.encode(RECORDS[:1]).indices.tolist()} >= {"income"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "each field a weight"),
        ({"title": 0}, "weight greater than 0.*got 0 for title"),
        ({"title": -1.0}, "got -1.0 for title"),
        ({"title": "2"}, "got '2' for title"),
        ({"title": {"weight": 1, "size": 2}}, "weight and ngram_range"),
        ({"title": {"ngram_range": (2, 1)}}, "field title: ngram_range must be two integers"),
        ({3: 1.0}, "each field a weight"),
        (["title"], "fields must be a dict or None"),
    ],
)
def test_bad_fields_are_refused(fields, message):
    with pytest.raises(LabelwoodError, match=message):
        TfidfEncoder(fields=fields, n_jobs=1).fit(RECORDS)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"title": "a"}, {"heading": "b"}], "record at position 1 has none of the fields title, abstract.*'heading'"),
        ([{"title": 3}], "field title must be a string; got int at position 0"),
        ([3], "must be a record with the fields title, abstract, or a text; got int at position 0"),
        ({"title": "a"}, "Pass a single record as a list of one"),
        ("a", "Pass a single record as a list of one"),
    ],
)
def test_bad_documents_are_refused(documents, message):
    with pytest.raises(LabelwoodError, match=message):
        TfidfEncoder(fields=FIELDS, n_jobs=1).fit(RECORDS).transform(documents)


def test_records_without_fields_are_refused():
    with pytest.raises(LabelwoodError, match=r"got dict at position 0\. Records need fields"):
        TfidfEncoder(n_jobs=1).fit(RECORDS)


def test_a_model_keeps_its_fields(tmp_path):
    labels = [["law"], ["pets"], ["law"], ["pets"]]
    model = TextClassifier(LinearTree(n_jobs=1), fields=FIELDS).fit(RECORDS, labels)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.field_names == ("title", "abstract")
    assert again.predict_topk(RECORDS, 1)[0].tolist() == model.predict_topk(RECORDS, 1)[0].tolist()
    assert again.predict_topk(["cats"], 1)[0].tolist() == [["pets"]]
    assert again.explain([{"title": "cats"}], 1)[0].suggestions[0].label == "pets"


def test_a_table_gives_its_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(RECORDS)
    encoder = TfidfEncoder(fields=FIELDS, n_jobs=1)
    assert (encoder.fit_transform(frame) != encoder.fit_transform(RECORDS)).nnz == 0
    with pytest.raises(LabelwoodError, match="lacks the column 'abstract'"):
        encoder.fit(frame[["title"]])


def test_a_transformer_takes_no_fields():
    from sklearn.feature_extraction.text import TfidfVectorizer

    with pytest.raises(LabelwoodError, match="fields need a TfidfEncoder or a HashingEncoder"):
        TextClassifier(LinearTree(n_jobs=1), TfidfVectorizer(), fields=FIELDS).fit(RECORDS, [["a"]] * 4)
