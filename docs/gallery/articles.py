"""Generated articles for the gallery: each tag has words of its own, frequent tags have many articles.

An article also has some words of tags that it does not have, as real texts do.
"""

from __future__ import annotations

import random

WORDS = {
    "law": "court law judge appeal statute ruling trial contract",
    "tax": "tax income deduction return fiscal levy revenue refund",
    "banks": "bank credit loan interest deposit capital branch account",
    "pets": "dog cat hamster leash kennel paw feed home",
    "oceans": "whale ocean dolphin reef tide coral wave ship",
    "climate": "climate warming carbon emission weather storm drought heat",
    "energy": "energy power grid solar wind turbine battery plant",
    "health": "health doctor patient clinic vaccine virus symptom nurse",
    "schools": "school teacher pupil lesson exam class grade campus",
    "music": "music concert song orchestra melody guitar piano choir",
    "sport": "match goal team coach league player stadium score",
    "trains": "train rail station track carriage timetable platform signal",
    "chess": "chess rook bishop checkmate opening pawn",
    "bees": "bee hive honey queen swarm nectar",
    "fonts": "font serif glyph kerning typeface letter",
}
_COMMON = [
    "the",
    "a",
    "of",
    "in",
    "on",
    "and",
    "for",
    "with",
    "new",
    "old",
    "year",
    "people",
    "city",
    "report",
    "change",
    "small",
    "large",
    "first",
]


def texts_and_tags(count: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """So many articles and their one to three tags."""
    draw = random.Random(seed)
    names = list(WORDS)
    weights = [1 / (1 + place) for place in range(len(names))]
    texts, tags = [], []
    for _ in range(count):
        own = sorted(set(draw.choices(names, weights, k=draw.choice((1, 2, 2, 3)))))
        words = [word for tag in own for word in draw.choices(WORDS[tag].split(), k=3)]
        strays = [draw.choice(WORDS[draw.choice(names)].split()) for _ in range(5)]
        words += draw.choices(_COMMON, k=12) + strays
        draw.shuffle(words)
        texts.append(" ".join(words))
        tags.append(own)
    return texts, tags
