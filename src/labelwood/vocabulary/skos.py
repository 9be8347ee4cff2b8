"""Vocabularies as SKOS: Turtle, RDF/XML, JSON-LD and N-Triples, through rdflib.

A concept is what has the type ``skos:Concept`` or a ``skos:prefLabel``. ``skos:narrower`` is read as the inverse of
``skos:broader``, ``dcterms:replaces`` as that of ``dcterms:isReplacedBy``; ``rdfs:label`` stands in for a missing
preferred name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
from labelwood.vocabulary.rdf import parse_rdf, quiet_rdflib, rdflib_module
from labelwood.vocabulary.vocabulary import Vocabulary

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
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")


def read_skos(path: Path, syntax: str, *, max_memory: int | None) -> Reading:
    """Read a vocabulary from an RDF file; ``syntax`` is one of :data:`labelwood.vocabulary.rdf.SYNTAXES`."""
    return read_graph(parse_rdf(read_text(path, max_memory)[0].tobytes(), syntax, path), str(path))


def read_graph(graph: Any, where: str) -> Reading:
    """The vocabulary in a graph of rdflib; ``where`` opens error messages."""
    drafts = Drafts()
    _gather(graph, rdflib_module(), drafts, where)
    if not drafts:
        raise FormatError(f"{where}: there is no concept: nothing has the type skos:Concept or a skos:prefLabel")
    return drafts.finish()


def write_skos(vocabulary: Vocabulary, syntax: str) -> bytes:
    """A vocabulary in an RDF syntax, with UTF-8 characters; every key must be a URI."""
    rdflib = rdflib_module()
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
    with quiet_rdflib():
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


def _checked_iri(uri: str) -> str:
    if not _IRI.fullmatch(uri):
        raise LabelwoodError(f"vocabulary: SKOS needs URIs, but a key is {uri[:60]!r}; write a table (.csv) instead")
    return uri
