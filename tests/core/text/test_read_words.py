"""Texts as numbers of words: every number leads back to its word, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest

from labelwood import _core
from labelwood.storage import packed_strings
from labelwood.text import HashingEncoder, TfidfEncoder
from tests.reference.text import cut_text

N_LANGUAGES, N_FIELDS = 3, 2


@pytest.fixture(scope="module")
def strings():
    """About three pieces of text, a unit of parallel work each; two strings per document."""
    rng = np.random.default_rng(0)
    words = [f"{'Äx'[i % 2]}{i:x}" for i in range(5000)] + ["a", "seventeen_bytes_or", "²"]
    return [" ".join(words[w] for w in rng.integers(len(words), size=rng.integers(60))) for _ in range(12_000)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_numbers_are_those_of_the_words(strings, n_threads):
    languages = np.random.default_rng(1).integers(N_LANGUAGES, size=len(strings) // N_FIELDS).astype(np.uint8)
    ones = np.ones(N_FIELDS, np.int64)
    options = {"unit": "word", "shortest": ones, "longest": ones, "min_length": 2, "lowercase": True}
    packed = packed_strings.pack(strings)
    assert len(packed[0]) > 2**20
    lines, ends, tokens, starts = _core.read_words(*packed, options, languages, N_LANGUAGES, n_threads)
    words = [line.decode() for line in packed_strings.split_lines(lines)]
    assert ends.tolist()[-1] == len(words)
    for language in range(N_LANGUAGES):
        own = words[ends[language] : ends[language + 1]]
        assert len(set(own)) == len(own)
    for number, string in enumerate(strings):
        own = tokens[starts[number] : starts[number + 1]]
        language = languages[number // N_FIELDS]
        assert np.all((own >= ends[language]) & (own < ends[language + 1]))
        expected = cut_text(string, analyzer="word", ngram_range=(1, 1), token_length=2, lowercase=True)
        assert [words[token] for token in own] == expected


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2)])
@pytest.mark.parametrize("encoder_class", [TfidfEncoder, HashingEncoder])
def test_forms_do_not_depend_on_threads(strings, encoder_class, ngram_range):
    records = [{"title": one, "body": two} for one, two in zip(strings[::2], strings[1::2], strict=True)]
    encoders = [
        encoder_class(fold_accents=True, fields={"title": 2.0, "body": 1.0}, ngram_range=ngram_range, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    ]
    one, two = (encoder.fit_transform(records) for encoder in encoders)
    assert (one != two).nnz == 0
    assert (encoders[0].transform(records[:500]) != one[:500]).nnz == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lines": np.frombuffer(b"one", np.uint8)}, "lacks its newline"),
        ({"tokens": np.array([1], np.int32)}, "do not fit together"),
        ({"tokens": np.array([-1], np.int32)}, "do not fit together"),
        ({"starts": np.array([0, 2], np.int64)}, "do not fit together"),
        ({"starts": np.array([0, 0, 1], np.int64)}, "a text lacks its words"),
    ],
)
def test_forms_that_do_not_fit_are_refused(change, message):
    ones = np.ones(1, np.int64)
    options = {"unit": "word", "shortest": ones, "longest": ones, "min_length": 2, "lowercase": True}
    options |= {"min_documents": 1, "max_documents": 1}
    forms = {"lines": np.frombuffer(b"one\n", np.uint8), "tokens": np.zeros(1, np.int32), "starts": np.array([0, 1])}
    packed = packed_strings.pack(["one"])
    assert _core.learn_terms(*packed, options, forms, 1)[4].tolist() == [1]
    with pytest.raises(ValueError, match=message):
        _core.learn_terms(*packed, options, forms | change, 1)
