"""Questions to a Finnish library and their subjects, made at random: short texts, inflected words, rare subjects.

They resemble the ``kirjastonhoitaja`` corpus of Annif's tutorial: a question has a greeting, some words about its one
to three subjects in various cases, and words that say nothing. Some subjects stand in one question only.
"""

from __future__ import annotations

import random
from pathlib import Path

EX = "http://example.org/yso/"
_STARTS = [a + b for a in "hklmprstv" for b in "aeiou"]
_ENDS = ("kka", "lu", "ri", "nto", "sto", "mi", "la", "nen", "ta", "vu", "rja", "hti", "lma", "nki")
_CASES = ("", "n", "a", "ssa", "sta", "lla", "lta", "lle", "na", "ksi", "ja", "jen", "issa", "ista")
_COMMON = [
    *("hei", "moi", "kysyn", "onko", "teillä", "löytyisikö", "mistä", "kirja", "kirjoja", "tietoa", "aiheesta"),
    *("haluaisin", "etsin", "vanha", "uusi", "suomen", "kuka", "mikä", "milloin", "kiitos", "avusta", "lainata"),
]


def _words(rng: random.Random, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[rng.choice(_STARTS) + rng.choice(_STARTS) * rng.randint(0, 1) + rng.choice(_ENDS)] = None
    return list(found)


def write_library(
    folder: Path, *, n_subjects: int = 300, n_train: int = 1500, n_test: int = 300, seed: int = 0
) -> None:
    """Write ``yso.csv`` (Finnish and English names), ``library-train.tsv`` and ``library-test.tsv`` for Annif."""
    rng = random.Random(0)
    words = _words(rng, 3 * n_subjects)
    own = [words[3 * number : 3 * number + 3] for number in range(n_subjects)]
    for number in range(n_subjects):  # words of other subjects, too: words are ambiguous
        own[number] += rng.sample(words, 2)
    rows = [f"{EX}p{number},{own[number][0]},subject {number}" for number in range(n_subjects)]
    (folder / "yso.csv").write_text("uri,label_fi,label_en\n" + "\n".join(rows) + "\n", encoding="utf-8")
    shares = [1 / (number + 1) ** 0.7 for number in range(n_subjects)]

    def question() -> str:
        subjects = sorted(set(rng.choices(range(n_subjects), shares, k=rng.randint(1, 3))))
        said = rng.sample(_COMMON, rng.randint(4, 9))
        for subject in subjects:
            said += [word + rng.choice(_CASES) for word in rng.choices(own[subject], k=rng.randint(1, 3))]
        rng.shuffle(said)
        return " ".join(said) + "\t" + " ".join(f"<{EX}p{subject}>" for subject in subjects) + "\n"

    for name, count in (("train", n_train), ("test", n_test)):
        (folder / f"library-{name}.tsv").write_text("".join(question() for _ in range(count)), encoding="utf-8")
