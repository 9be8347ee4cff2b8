"""Show or convert a controlled vocabulary.

show prints the counts and languages of FILE, or what it says about CONCEPT, a URI or a name. convert writes FILE as
NEW. The suffix tells the format: .ttl, .rdf, .jsonld, .nt (SKOS, with rdflib), .csv and .tsv (tables, also Annif's).
"""

from __future__ import annotations

import argparse
from typing import Any

from labelwood.cli.support.output import print_facts, print_json, remark
from labelwood.cli.support.parser import Parser, UsageError, one_of
from labelwood.errors import LabelwoodError, nearest
from labelwood.vocabulary import Vocabulary, read_vocabulary, save_vocabulary
from labelwood.vocabulary.concept import LINK_KINDS, TEXT_KINDS

EXAMPLES = (
    "labelwood vocabulary show yso.ttl",
    "labelwood vocabulary show yso.ttl http://www.yso.fi/onto/yso/p864",
    "labelwood vocabulary convert yso.ttl yso.csv",
    "labelwood vocabulary convert labels.tsv yso.ttl --columns uri,label_fi,alt_fi,label_en,label_sv,count",
)
_TAKES = {"show": (1, 2, "FILE and, if you like, CONCEPT"), "convert": (2, 2, "FILE and NEW")}


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("action", metavar="ACTION", takes=f"one of {', '.join(_TAKES)}", convert=one_of(_TAKES))
    parser.add_argument("words", metavar="WORD", nargs="*", help="for show: FILE [CONCEPT]; for convert: FILE NEW")
    vocabulary_flags(parser)
    parser.json_flag()


def vocabulary_flags(parser: Parser) -> None:
    """Add the flags that say how a vocabulary file is read."""
    parser.value(
        "--language",
        metavar="TAG",
        takes="a language tag, such as fi",
        default="",
        help="language of names whose file does not tell it, as in Annif's TSV; for show, the language of the names",
    )
    parser.value(
        "--columns",
        metavar="NAME,NAME",
        takes="names of columns, separated by commas",
        convert=lambda text: text.split(","),
        help="columns of a table without a header: uri, label_fi (preferred name), alt_fi, hidden_fi, definition_fi, "
        "notation, broader, related, deprecated, replaced_by; other names are ignored",
    )


def run(options: argparse.Namespace) -> int:
    """Do what ACTION says."""
    least, most, what = _TAKES[options.action]
    if not least <= len(options.words) <= most:
        raise UsageError(f"labelwood vocabulary: {options.action} takes {what}; got {len(options.words)} words")
    file, *others = options.words
    vocabulary = _read(file, options)
    if options.action == "convert":
        save_vocabulary(vocabulary, others[0])
        facts = {"file": others[0], **vocabulary.describe()}
    else:
        facts = _concept(vocabulary, others[0], options.language) if others else vocabulary.describe()
    if options.json:
        print_json(facts)
    else:
        print_facts({name: value for name, value in facts.items() if value not in ([], {})})
    return 0


def _read(file: str, options: argparse.Namespace) -> Vocabulary:
    found = read_vocabulary(file, language=options.language, columns=options.columns)
    for one in found.remarks:
        remark(f"{file}: {one}")
    return found.vocabulary


def _concept(vocabulary: Vocabulary, word: str, language: str) -> dict[str, Any]:
    """What a vocabulary says about one concept."""
    number = vocabulary.resolve(word)
    if number is None:
        raise LabelwoodError(f"vocabulary: there is no concept {word!r}{nearest(word.casefold(), vocabulary.by_name)}")
    concept, narrower = vocabulary.concept(number), vocabulary.narrower(number)
    texts: dict[str, dict[str, list[str]]] = {}
    for text in concept.texts:
        texts.setdefault(TEXT_KINDS[text.kind], {}).setdefault(text.language or "-", []).append(text.text)
    return {
        "uri": concept.uri,
        "name": vocabulary.name(number, language),
        "deprecated": concept.deprecated,
        **{kind: {tag: "; ".join(some) for tag, some in by_tag.items()} for kind, by_tag in texts.items()},
        **{kind: vocabulary.shown(concept.linked(place), language) for place, kind in enumerate(LINK_KINDS)},
        "narrower": vocabulary.shown(vocabulary.uris_of(narrower), language),
    }
