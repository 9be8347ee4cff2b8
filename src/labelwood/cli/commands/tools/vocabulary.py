"""Show or convert a controlled vocabulary, or give a model a newer one.

show prints the counts and languages of FILE, or what it says about CONCEPT, a URI or a name. convert writes FILE as
NEW. update gives MODEL the vocabulary NEW without training it again: names change, labels of replaced concepts take
over the new URI, labels of deprecated concepts are not suggested any more. For show and convert, FILE may be a model.

The suffix tells the format: .ttl, .rdf, .jsonld, .nt (SKOS, with rdflib), .csv and .tsv (tables, also Annif's).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelwood.cli.support.output import print_facts, print_json
from labelwood.cli.support.parser import Options, Parser, UsageError, one_of
from labelwood.cli.support.safe_output import remark
from labelwood.errors import LabelwoodError, nearest
from labelwood.methods import load
from labelwood.methods.online.learner import learner_of
from labelwood.methods.text_classifier import TextClassifier
from labelwood.storage.model_directory import read_model
from labelwood.vocabulary import Vocabulary, read_vocabulary, save_vocabulary
from labelwood.vocabulary.concept import LINK_KINDS, TEXT_KINDS
from labelwood.vocabulary.update import update_model

EXAMPLES = (
    "labelwood vocabulary show yso.ttl",
    "labelwood vocabulary show yso.ttl http://www.yso.fi/onto/yso/p864",
    "labelwood vocabulary convert yso.ttl yso.csv",
    "labelwood vocabulary update model yso-2027.ttl",
    "labelwood vocabulary update model corrections.csv --only-changes",
    "labelwood vocabulary convert labels.tsv yso.ttl --columns uri,label_fi,alt_fi,label_en,label_sv,count",
)
_TAKES = {
    "show": (1, 2, "FILE and, if you like, CONCEPT"),
    "convert": (2, 2, "FILE and NEW"),
    "update": (2, 2, "MODEL and NEW"),
}
_LISTED = 10  # concepts of each kind of change that are printed


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("action", metavar="ACTION", takes=f"one of {', '.join(_TAKES)}", convert=one_of(_TAKES))
    parser.add_argument(
        "words", metavar="WORD", nargs="*", help="for show: FILE [CONCEPT]; convert: FILE NEW; update: MODEL NEW"
    )
    vocabulary_flags(parser)
    parser.add_argument(
        "--only-changes",
        action="store_true",
        help="for update: NEW holds only the concepts that are new or other than before; all others stay as they are",
    )
    parser.add_argument(
        "--learn-names",
        action="store_true",
        help="for update: teach an online model of texts each added concept by its names, so that it can be suggested",
    )
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


def run(options: Options) -> int:
    """Do what ACTION says."""
    least, most, what = _TAKES[options.action]
    if not least <= len(options.words) <= most:
        raise UsageError(f"labelwood vocabulary: {options.action} takes {what}; got {len(options.words)} words")
    file, *others = options.words
    if options.action == "update":
        return _update(file, _read(others[0], options), options)
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


def _read(file: str, options: Options) -> Vocabulary:
    if Path(file).is_dir():
        kept = Vocabulary.restore(read_model(file)[1])
        if kept is None:
            raise LabelwoodError(f"{file}: the model has no vocabulary; train with --vocabulary, or update it")
        return kept
    found = read_vocabulary(file, language=options.language, columns=options.columns)
    for one in found.remarks:
        remark(f"{file}: {one}")
    return found.vocabulary


def _update(model: str, new: Vocabulary, options: Options) -> int:
    """Give a model a newer vocabulary and print what changed."""
    if options.learn_names:
        learner_of(load(model), owner=model)  # before the model changes
    changes = update_model(model, new, only_changes=options.only_changes)
    if options.learn_names:
        _learn_names(model, new, changes.added)
    if options.json:
        print_json(changes._asdict())
        return 0
    concepts = {"added": changes.added, "renamed": changes.renamed, "deprecated": changes.deprecated}
    for what, uris in concepts.items():
        print(f"{what}: {len(uris):,} concepts")
        for shown in new.shown(uris[:_LISTED], options.language):
            print(f"  {shown}")
        if len(uris) > _LISTED:
            print(f"  and {len(uris) - _LISTED:,} more")
    print(
        f"labels of the model: {changes.labels_renamed:,} renamed, {changes.labels_merged:,} merged, "
        f"{changes.labels_retired:,} retired"
    )
    return 0


def _learn_names(path: str, vocabulary: Vocabulary, added: list[str]) -> None:
    """Teach an online model added concepts by their names, one example each."""
    model = load(path)
    if not isinstance(model, TextClassifier):
        raise LabelwoodError(f"{path}: --learn-names needs a model of texts")
    texts = [" ".join(vocabulary.texts_of(number)) for uri in added if (number := vocabulary.find(uri)) is not None]
    if texts:
        model.partial_fit(texts, [[uri] for uri in added])
        model.save(path)


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
