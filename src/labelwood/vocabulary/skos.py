"""Vocabularies as SKOS: Turtle, RDF/XML, JSON-LD and N-Triples, through rdflib.

A concept is what has the type ``skos:Concept`` or a ``skos:prefLabel``. ``skos:narrower`` is read as the inverse of
``skos:broader``, ``dcterms:replaces`` as that of ``dcterms:isReplacedBy``; ``rdfs:label`` stands in for a missing
preferred name. Nothing is fetched: files with external entities or remote JSON-LD contexts are refused.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax import SAXParseException

from labelwood.data._files import read_text
from labelwood.errors import FormatError, LabelwoodError
from labelwood.vocabulary.concept import (
    ALTERNATIVE,
    BROADER,
    DEFINITION,
    HIDDEN,
    NOTATION,
    PREFERRED,
    RELATED,
    REPLACED_BY,
)
from labelwood.vocabulary.drafts import Drafts, Reading
from labelwood.vocabulary.vocabulary import Vocabulary

SYNTAXES = {"turtle": "Turtle", "xml": "RDF/XML", "json-ld": "JSON-LD", "nt": "N-Triples"}
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_DCTERMS = "http://purl.org/dc/terms/"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
_TEXTS = {
    _SKOS + "prefLabel": PREFERRED,
    _SKOS + "altLabel": ALTERNATIVE,
    _SKOS + "hiddenLabel": HIDDEN,
    _SKOS + "notation": NOTATION,
    _SKOS + "definition": DEFINITION,
}
_LINKS = {_SKOS + "broader": BROADER, _SKOS + "related": RELATED, _DCTERMS + "isReplacedBy": REPLACED_BY}
_INVERSE = {_SKOS + "narrower": BROADER, _DCTERMS + "replaces": REPLACED_BY}
_LONGEST_ENTITY = 1000
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")


def read_skos(path: Path, syntax: str, *, max_memory: int | None) -> Reading:
    """Read a vocabulary from an RDF file; ``syntax`` is one of :data:`SYNTAXES`."""
    rdflib = _rdflib()
    content = read_text(path, max_memory)[0].tobytes()
    _check_safe(content, syntax, path)
    graph = rdflib.Graph()
    with _quiet(), _as_written(rdflib):
        try:
            graph.parse(data=content, format=syntax, publicID="")
        except Exception as error:  # rdflib raises errors of many kinds for bad input
            raise FormatError(f"{path}{_place(error, content, syntax)}") from None
    return read_graph(graph, str(path))


def read_graph(graph: Any, where: str) -> Reading:
    """The vocabulary in a graph of rdflib; ``where`` opens error messages."""
    drafts = Drafts()
    _gather(graph, _rdflib(), drafts, where)
    if not drafts:
        raise FormatError(f"{where}: there is no concept: nothing has the type skos:Concept or a skos:prefLabel")
    return drafts.finish()


def write_skos(vocabulary: Vocabulary, syntax: str) -> bytes:
    """A vocabulary in an RDF syntax, with UTF-8 characters; every key must be a URI."""
    rdflib = _rdflib()
    graph = rdflib.Graph(bind_namespaces="none")
    graph.bind("skos", _SKOS)
    graph.bind("dcterms", _DCTERMS)
    graph.bind("owl", _DEPRECATED.removesuffix("deprecated"))
    texts = {kind: rdflib.URIRef(uri) for uri, kind in _TEXTS.items()}
    links = {kind: rdflib.URIRef(uri) for uri, kind in _LINKS.items()}
    for concept in vocabulary:
        subject = rdflib.URIRef(_checked_iri(concept.uri))
        graph.add((subject, rdflib.URIRef(_TYPE), rdflib.URIRef(_SKOS + "Concept")))
        for text in concept.texts:
            graph.add((subject, texts[text.kind], rdflib.Literal(text.text, lang=text.language or None)))
        for link in concept.links:
            graph.add((subject, links[link.kind], rdflib.URIRef(_checked_iri(link.uri))))
        if concept.deprecated:
            graph.add((subject, rdflib.URIRef(_DEPRECATED), rdflib.Literal(True)))
    with _quiet():
        written: bytes = graph.serialize(format=syntax, encoding="utf-8")
    return written


def _gather(graph: Any, rdflib: Any, drafts: Drafts, path: str) -> None:
    """Move the statements about concepts from a graph to drafts."""
    marks = [(rdflib.URIRef(_TYPE), rdflib.URIRef(_SKOS + "Concept")), (rdflib.URIRef(_SKOS + "prefLabel"), None)]
    found = {subject for mark in marks for subject in graph.subjects(*mark)}
    nameless = {subject for subject in found if isinstance(subject, rdflib.BNode)}
    if nameless:
        drafts.remarks.append(f"{len(nameless):,} concepts without a URI are left out")
    for subject in found - nameless:
        drafts.add(str(subject), f"{path}, concept {str(subject)[:200]}")
    for subject, predicate, value in graph:
        kind = str(predicate)
        where = f"{path}, concept {str(subject)[:200]}"
        if kind in _INVERSE and str(value) in drafts and isinstance(subject, rdflib.URIRef):
            drafts.add_link(str(value), _INVERSE[kind], str(subject), where)
        if isinstance(subject, rdflib.BNode) or str(subject) not in drafts:
            continue
        if kind in _TEXTS and isinstance(value, rdflib.Literal):
            drafts.add_text(str(subject), _TEXTS[kind], value.language, str(value), where)
        elif kind in _LINKS and isinstance(value, rdflib.URIRef):
            drafts.add_link(str(subject), _LINKS[kind], str(value), where)
        elif kind == _DEPRECATED and str(value).lower() in ("true", "1"):
            drafts.deprecate(str(subject))
    preferred = rdflib.URIRef(_SKOS + "prefLabel")
    for subject in found - nameless:
        if (subject, preferred, None) not in graph:
            for value in graph.objects(subject, rdflib.URIRef(_LABEL)):
                if isinstance(value, rdflib.Literal):
                    where = f"{path}, concept {str(subject)[:200]}"
                    drafts.add_text(str(subject), PREFERRED, value.language, str(value), where)


def _check_safe(content: bytes, syntax: str, path: Path) -> None:
    """Refuse what would make the parser fetch something, or expand a small file without bounds."""
    if syntax == "xml":
        _check_entities(content, path)
    elif syntax == "json-ld":
        try:
            document = json.loads(content)
        except RecursionError:
            raise FormatError(f"{path}: the JSON is nested too deeply") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise FormatError(f"{path}{line}: not valid JSON-LD ({error})") from None
        _check_contexts(document, path)


def _check_entities(content: bytes, path: Path) -> None:
    """Refuse external entities, and entities that are long or made of other entities; the others are short names."""

    def declared(name: str, is_parameter: bool, value: str | None, *others: Any) -> None:
        if is_parameter or value is None or "&" in value or len(value) > _LONGEST_ENTITY:
            line = parser.CurrentLineNumber
            raise FormatError(
                f"{path}, line {line}: the entity {name[:40]} is refused: an entity must be a plain text of at most "
                f"{_LONGEST_ENTITY} characters, not a reference to others or to another file"
            )

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = declared
    with contextlib.suppress(expat.ExpatError):  # rdflib's parser meets the same error and tells its place
        parser.Parse(content, True)


def _check_contexts(document: Any, path: Path) -> None:
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            given = part.get("@context")
            several = given if isinstance(given, list) else [given]
            remote = next((one for one in several if isinstance(one, str)), None)
            for one in several:
                if isinstance(one, dict) and isinstance(one.get("@import"), str):
                    remote = one["@import"]
            if remote is not None:
                raise FormatError(
                    f"{path}: the remote context {remote[:100]!r} is not fetched; put the context into the file"
                )
            waiting += part.values()


def _place(error: Exception, content: bytes, syntax: str) -> str:
    """Where a file is malformed and why, in one line."""
    if isinstance(error, RecursionError):
        return f": the {SYNTAXES[syntax]} is nested too deeply"
    if syntax == "nt":  # rdflib's parser of N-Triples does not count lines; its parser of Turtle does
        try:
            _rdflib().Graph().parse(data=content, format="turtle", publicID="")
        except Exception as other:
            error = other
    line: int | None = None
    reason = str(error)
    if hasattr(error, "lines"):
        line, reason = int(error.lines) + 1, str(getattr(error, "_why", error))
    elif isinstance(error, SAXParseException):
        line, reason = error.getLineNumber(), error.getMessage()
    at = "" if line is None else f", line {line}"
    return f"{at}: not valid {SYNTAXES[syntax]} ({' '.join(reason.split())[:200]})"


def _checked_iri(uri: str) -> str:
    if not _IRI.fullmatch(uri):
        raise LabelwoodError(f"vocabulary: SKOS needs URIs, but a key is {uri[:60]!r}; write a table (.csv) instead")
    return uri


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep rdflib from printing warnings about odd URIs and numbers, and about its own classes."""
    logger = logging.getLogger("rdflib")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _as_written(rdflib: Any) -> Iterator[None]:
    """Keep rdflib from writing numbers anew: a notation 007 would become 7, and 1E300000000 take a gigabyte."""
    before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = before


def _rdflib() -> Any:
    try:
        return import_module("rdflib")
    except ImportError:
        raise LabelwoodError("vocabulary: SKOS needs rdflib; pip install 'labelwood[skos]'") from None
