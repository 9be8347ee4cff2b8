"""A small vocabulary in two languages: hierarchy, replaced concepts, and every kind of text."""

from labelwood.vocabulary import Concept
from labelwood.vocabulary.concept import (
    ALTERNATIVE,
    BROADER,
    DEFINITION,
    HIDDEN,
    NOTATION,
    PREFERRED,
    RELATED,
    REPLACED_BY,
    Link,
    Text,
)

EX = "http://example.org/"
ANIMALS = [
    Concept(EX + "animal", (Text(PREFERRED, "en", "animal"), Text(PREFERRED, "fi", "eläin"))),
    Concept(
        EX + "cat",
        (Text(PREFERRED, "en", "cat"), Text(PREFERRED, "fi", "kissa"), Text(ALTERNATIVE, "en", "domestic | cat"),
         Text(ALTERNATIVE, "en", "pussy\\cat"), Text(HIDDEN, "en", "caat"), Text(NOTATION, "", "599.75"),
         Text(DEFINITION, "en", 'says "meow", mostly')),
        (Link(BROADER, EX + "animal"), Link(RELATED, EX + "dog")),
    ),
    Concept(EX + "dog", (Text(PREFERRED, "en", "dog"),), (Link(BROADER, EX + "animal"), Link(RELATED, EX + "cat"))),
    Concept(EX + "hound", (Text(PREFERRED, "en", "hound"),), (Link(REPLACED_BY, EX + "dog"),), True),
    Concept(EX + "whelp", (Text(PREFERRED, "en", "whelp"),), (Link(REPLACED_BY, EX + "hound"),), True),
    Concept(EX + "beast", (Text(PREFERRED, "en", "beast"),), (), True),
    Concept(EX + "fish", (Text(PREFERRED, "fi", "kala"),), (Link(BROADER, "http://elsewhere.org/being"),)),
]  # fmt: skip
