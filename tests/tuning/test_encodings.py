"""Tuning of texts: which encoders are tried, that candidates share vectors, and that a better encoder wins."""

from __future__ import annotations

import numpy as np
import pytest

from labelwood.sparse import from_lists
from labelwood.text import HashingEncoder, TfidfEncoder
from labelwood.tuning import Texts, Trial, as_flags, tune
from labelwood.tuning.encodings import languages_of
from labelwood.tuning.successive_halving import _is_dearer, _with_best_encoder

FINNISH = ["Kirjastojen kokoelmat ja asiakkaat Helsingissä", "Metsien hoito ja marjat suomalaisissa metsissä"] * 20


def in_pieces(n_rows):
    """Texts whose labels are parts of words: whole words hardly repeat."""
    random = np.random.default_rng(0)
    stems = ["kirja", "metsa", "talo", "vesi", "kone"]
    labels = random.integers(0, len(stems), n_rows)
    letters = np.array(list("abcdefghijklmnop"))
    texts = [f"{stems[label]}{''.join(random.choice(letters, 5))} xx" for label in labels]
    return texts, from_lists([[int(label)] for label in labels], len(stems))


def test_a_better_encoder_wins_and_is_told():
    texts, Y = in_pieces(2000)
    candidates = (("linear-tree", {}), ("linear-tree", {"C": 0.5}))
    rows = Texts(texts, TfidfEncoder, {"n_jobs": 1, "words": "forms"})
    found = tune(rows, Y, budget=120, metric="P@1", candidates=candidates, n_jobs=1)
    assert found.best.encoder["analyzer"] == "char_wb"
    assert "--analyzer char_wb --ngram-range 3,5" in found.best.name
    plain = next(trial for trial in found.trials if not trial.encoder and not trial.parameters)
    assert found.best.score > plain.score + 0.3
    other = [trial for trial in found.trials if trial.parameters]
    assert any(trial.encoder.get("analyzer") == "char_wb" for trial in other), "others take the best encoder"
    encoder, vectors = rows.fitted(found.best.encoder)
    assert (encoder.analyzer, vectors.n_rows) == ("char_wb", 2000)


def test_vectors_are_made_once():
    made = []

    class Counted(TfidfEncoder):
        def fit_encode(self, texts, **more):
            made.append(self.get_params()["min_df"])
            return super().fit_encode(texts, **more)

    rows = Texts(FINNISH, Counted, {"n_jobs": 1}).split(np.arange(30), np.arange(30, 40))
    first, again = rows.vectors({"min_df": 2}, 10), rows.vectors({"min_df": 2}, 10)
    assert first is again
    assert made == [2]
    assert (first[0].n_rows, first[1].n_rows) == (10, 10)
    rows.vectors({"min_df": 2}, 20)
    rows.forget()
    rows.vectors({"min_df": 2}, 20)
    assert made == [2, 2, 2]


def test_the_variants_follow_the_texts_and_the_fixed_choices():
    plain = Texts(["cats and dogs"] * 5).variants()
    assert {"ngram_range": (1, 2), "min_df": 2} in plain
    assert {"min_df": 2} in plain
    assert all("min_df" not in one for one in Texts(FINNISH, fixed={"min_df": 3}).variants())
    assert all("analyzer" not in one for one in Texts(FINNISH, fixed={"analyzer": "word"}).variants())
    weighed = Texts([{"a": "b"}] * 5, fixed={"fields": {"a": 2.0, "c": {"weight": 1.0}}}).variants()
    assert {"fields": {"a": 4.0, "c": {"weight": 1.0}}} in weighed
    hashed = Texts(FINNISH, HashingEncoder).variants()
    assert {"analyzer": "char_wb", "ngram_range": (3, 5)} in hashed
    assert all("min_df" not in one for one in hashed)


def test_the_language_is_guessed_or_fixed():
    pytest.importorskip("py3langid")
    pytest.importorskip("Stemmer")
    assert languages_of(FINNISH) == "fi"
    assert {"words": "stems", "language": "fi"} in Texts(FINNISH).variants()
    assert {"words": "stems"} in Texts(FINNISH, fixed={"language": "sv"}).variants()
    assert all("words" not in one for one in Texts(FINNISH, fixed={"words": "forms", "language": "fi"}).variants())


def test_cheap_variants_get_their_turn():
    slow = Trial("a", {}, encoder={"analyzer": "char"})
    assert _is_dearer(Trial("a", {"n": 3}, encoder={"analyzer": "char"}), slow)
    assert not _is_dearer(Trial("a", {"n": 3}), slow)
    assert not _is_dearer(Trial("a", {}), Trial("a", {"n": 3}))
    assert not _is_dearer(Trial("b", {}), Trial("a", {}))


def test_all_candidates_take_the_best_encoder():
    best = Trial("a", {}, share=0.5, score=0.5, seconds=4.0, encoder={"min_df": 2})
    plain, other, own = (
        Trial("a", {}, share=0.5, score=0.4, seconds=1.0),
        Trial("b", {}, share=0.5, score=0.4, seconds=3.0),
        Trial("a", {}, share=0.5, score=0.3, seconds=1.0, encoder={"min_df": 3}),
    )
    found = _with_best_encoder([best, plain, other, own])
    assert [trial.encoder for trial in found] == [{"min_df": 2}, {}, {"min_df": 2}, {"min_df": 3}]
    assert found[2].seconds == 12.0
    assert _with_best_encoder([plain, own]) == [plain, own]


def test_flags():
    given = {"ngram_range": (1, 2), "fields": {"a": 1.0}, "binary": True, "norm": None}
    assert as_flags(given) == "--ngram-range 1,2 --fields '{\"a\": 1.0}' --binary true --norm none"
