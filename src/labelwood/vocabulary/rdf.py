"""Parse RDF files of strangers with rdflib: nothing is fetched, and time and memory stay in proportion to the file.

Refused are what names another file (external entities, remote JSON-LD contexts), and what a parser would expand out of
proportion (entities, thousands of XML prefixes at once). XML literals are read as their text, without the markup.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax import SAXParseException
from xml.sax.xmlreader import AttributesNSImpl

from labelwood.errors import FormatError, LabelwoodError

SYNTAXES = {"turtle": "Turtle", "xml": "RDF/XML", "json-ld": "JSON-LD", "nt": "N-Triples"}
_LONGEST_ENTITY = 1000
_EXPANSION = 20  # characters with entities replaced, for each byte of the file
_MOST_PREFIXES = 1000  # of XML, at one place: rdflib copies those so far for each
_PARSE_TYPE = ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "parseType")
_NOT_LITERAL = (None, "Resource", "Collection")


def parse_rdf(content: bytes, syntax: str, path: Path) -> Any:
    """The graph of rdflib in a file; ``syntax`` is one of :data:`SYNTAXES`, ``path`` opens error messages."""
    rdflib = rdflib_module()
    with quiet_rdflib(), _as_written(rdflib):
        source = _safe_source(rdflib, content, syntax, path)
        try:
            return _parsed(rdflib, source, syntax)
        except Exception as error:  # rdflib raises errors of many kinds for bad input
            raise FormatError(f"{path}{_place(error, rdflib, content, syntax)}") from None


def _safe_source(rdflib: Any, content: bytes, syntax: str, path: Path) -> Any:
    """What rdflib is to parse; raise if it would fetch something, or expand a small file without bounds."""
    if syntax == "json-ld":  # the document that was looked at, not its text, which could be read in another way
        return rdflib.parser.PythonInputSource(_safe_json(content, path))
    if syntax == "nt":
        try:
            return _line_source(rdflib, content)
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise FormatError(f"{path}, line {line}: not UTF-8 text ({error.reason})") from None
    if syntax == "xml":
        _check_xml(content, path)
    return rdflib.parser.StringInputSource(content)


def _parsed(rdflib: Any, source: Any, syntax: str) -> Any:
    class WithoutPrefixes(rdflib.namespace.NamespaceManager):  # type: ignore[misc]  # rdflib may be missing
        """Nothing here needs the prefixes of a file; rdflib compares each with all others."""

        def bind(self, *arguments: Any, **options: Any) -> None:
            """Forget a prefix."""

    graph = rdflib.Graph(bind_namespaces="none")
    graph.namespace_manager = WithoutPrefixes(graph, "none")
    if syntax != "xml":
        return graph.parse(source=source, format=syntax, publicID="")
    source.setPublicId("")
    parser = import_module("rdflib.plugins.parsers.rdfxml").create_parser(source, graph)
    parser.setContentHandler(_PlainText(parser.getContentHandler()))
    parser.parse(source)
    return graph


class _PlainText:
    """Hands the events of an XML parser to that of rdflib: text in one piece, XML literals without their markup.

    For every piece, which is a line at most, rdflib copies the text so far; for every tag in an XML literal, it parses
    the literal so far.
    """

    def __init__(self, handler: Any) -> None:
        self._handler = handler
        self._pieces: list[str] = []
        self._depth = 0  # of open elements from an XML literal on

    def characters(self, text: str) -> None:
        """Keep a piece of text."""
        self._pieces.append(text)

    def startElementNS(self, name: Any, qname: Any, attributes: Any) -> None:  # noqa: N802
        """Begin an element."""
        if self._depth == 0:
            if attributes.get(_PARSE_TYPE) not in _NOT_LITERAL:
                kept = {key: value for key, value in attributes.items() if key != _PARSE_TYPE}
                self._depth, attributes = 1, AttributesNSImpl(kept, {})
            self._hand_text()
            self._handler.startElementNS(name, qname, attributes)
        else:
            self._depth += 1

    def endElementNS(self, name: Any, qname: Any) -> None:  # noqa: N802
        """End an element."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._hand_text()
            self._handler.endElementNS(name, qname)

    def startPrefixMapping(self, prefix: Any, uri: Any) -> None:  # noqa: N802
        """Begin a prefix."""
        if self._depth == 0:
            self._handler.startPrefixMapping(prefix, uri)

    def endPrefixMapping(self, prefix: Any) -> None:  # noqa: N802
        """End a prefix."""
        if self._depth == 0:
            self._handler.endPrefixMapping(prefix)

    def processingInstruction(self, target: Any, data: Any) -> None:  # noqa: N802
        """Leave it out."""

    def skippedEntity(self, name: Any) -> None:  # noqa: N802
        """Leave it out."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)  # of the document as a whole

    def _hand_text(self) -> None:
        if self._pieces:
            self._handler.characters("".join(self._pieces))
            self._pieces.clear()


class _Lines(io.StringIO):
    """A text that is read line by line: rdflib's parser of N-Triples looks at a line again for every piece of it."""

    def read(self, size: int | None = -1, /) -> str:
        """The next line."""
        return self.readline()


def _line_source(rdflib: Any, content: bytes) -> Any:
    source = rdflib.parser.InputSource()
    source.setCharacterStream(_Lines(content.decode("utf-8-sig"), newline=None))
    return source


def _safe_json(content: bytes, path: Path) -> Any:
    try:
        document = json.loads(content)
    except RecursionError:
        raise FormatError(f"{path}: the JSON is nested too deeply") from None
    except ValueError as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise FormatError(f"{path}{line}: not valid JSON-LD ({' '.join(str(error).split())[:200]})") from None
    if not isinstance(document, dict | list):
        raise FormatError(f"{path}: not valid JSON-LD (it must be an object or a list)")
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            _check_context(part.get("@context"), path)
            waiting += part.values()
    return document


def _check_context(context: Any, path: Path) -> None:
    """Refuse a context that is the address of another one, or imports one, in lists within lists, too."""
    waiting = [context]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
            continue
        remote = part.get("@import") if isinstance(part, dict) else part
        if remote is not None:
            raise FormatError(
                f"{path}: the remote context {str(remote)[:100]!r} is not fetched; put the context into the file"
            )


def _check_xml(content: bytes, path: Path) -> None:
    """Refuse what makes rdflib read another file, or take time and memory out of proportion to this one."""
    parser = expat.ParserCreate(namespace_separator=" ")
    check = _XmlCheck(parser, content, path)
    parser.buffer_text = True
    parser.EntityDeclHandler = check.declared
    parser.StartNamespaceDeclHandler, parser.EndNamespaceDeclHandler = check.opened_prefix, check.closed_prefix
    try:
        parser.Parse(content, True)
    except FormatError:
        raise
    except (expat.ExpatError, ValueError, LookupError):  # rdflib's parser meets the same error and tells its place
        return


class _XmlCheck:
    """Handlers of a parser that raise on the first thing that is refused."""

    def __init__(self, parser: expat.XMLParserType, content: bytes, path: Path) -> None:
        self._parser, self._path = parser, path
        self._most_characters = _EXPANSION * len(content)
        self._n_characters = self._n_prefixes = 0

    def _refuse(self, why: str) -> None:
        raise FormatError(f"{self._path}, line {self._parser.CurrentLineNumber}: {why}")

    def declared(self, name: str, is_parameter: bool, value: str | None, *others: Any) -> None:
        """Check an entity; the file has one, so that its text is counted."""
        if is_parameter or value is None or "&" in value or len(value) > _LONGEST_ENTITY:
            self._refuse(
                f"the entity {name[:40]} is refused: an entity must be a plain text of at most "
                f"{_LONGEST_ENTITY} characters, not a reference to others or to another file"
            )
        self._parser.CharacterDataHandler = self._count
        self._parser.StartElementHandler = lambda name, attributes: self._count("".join(attributes.values()))

    def _count(self, text: str) -> None:
        self._n_characters += len(text)
        if self._n_characters > self._most_characters:
            self._refuse(f"its entities stand for more than {_EXPANSION} characters for each byte of the file")

    def opened_prefix(self, prefix: str | None, uri: str) -> None:
        """Count the prefixes that hold at one place."""
        self._n_prefixes += 1
        if self._n_prefixes > _MOST_PREFIXES:
            self._refuse(f"there are more than {_MOST_PREFIXES} prefixes")

    def closed_prefix(self, prefix: str | None) -> None:
        """Count back."""
        self._n_prefixes -= 1


def _place(error: Exception, rdflib: Any, content: bytes, syntax: str) -> str:
    """Where a file is malformed and why, in one line."""
    if isinstance(error, RecursionError):
        return f": the {SYNTAXES[syntax]} is nested too deeply"
    if syntax == "nt":  # rdflib's parser of N-Triples does not count lines; its parser of Turtle does
        try:
            _parsed(rdflib, rdflib.parser.StringInputSource(content), "turtle")
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


@contextlib.contextmanager
def quiet_rdflib() -> Iterator[None]:
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


def rdflib_module() -> Any:
    """The package rdflib; raise if it is missing."""
    try:
        return import_module("rdflib")
    except ImportError:
        raise LabelwoodError("vocabulary: SKOS needs rdflib; pip install 'labelwood[skos]'") from None
