"""A small vocabulary in two languages: hierarchy, replaced concepts, and every kind of text."""

from labelwood.vocabulary import Concept
from labelwood.vocabulary import concept as kinds
from labelwood.vocabulary.concept import Link, Text

EX = "http://example.org/"
ANIMALS = [
    Concept(EX + "animal", (Text(kinds.PREFERRED, "en", "animal"), Text(kinds.PREFERRED, "fi", "eläin"))),
    Concept(
        EX + "cat",
        (
            Text(kinds.PREFERRED, "en", "cat"),
            Text(kinds.PREFERRED, "fi", "kissa"),
            Text(kinds.ALTERNATIVE, "en", "domestic | cat"),
            Text(kinds.ALTERNATIVE, "en", "pussy\\cat"),
            Text(kinds.HIDDEN, "en", "caat"),
            Text(kinds.NOTATION, "", "599.75"),
            Text(kinds.DEFINITION, "en", 'says "meow", mostly'),
        ),
        (Link(kinds.BROADER, EX + "animal"), Link(kinds.RELATED, EX + "dog")),
    ),
    Concept(
        EX + "dog",
        (Text(kinds.PREFERRED, "en", "dog"),),
        (Link(kinds.BROADER, EX + "animal"), Link(kinds.RELATED, EX + "cat")),
    ),
    Concept(EX + "hound", (Text(kinds.PREFERRED, "en", "hound"),), (Link(kinds.REPLACED_BY, EX + "dog"),), True),
    Concept(EX + "whelp", (Text(kinds.PREFERRED, "en", "whelp"),), (Link(kinds.REPLACED_BY, EX + "hound"),), True),
    Concept(EX + "beast", (Text(kinds.PREFERRED, "en", "beast"),), (), True),
    Concept(EX + "fish", (Text(kinds.PREFERRED, "fi", "kala"),), (Link(kinds.BROADER, "http://elsewhere.org/being"),)),
]
