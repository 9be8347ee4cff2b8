"""RDF files of strangers: nothing is fetched, and no small file takes much time or memory."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from labelwood.errors import FormatError
from labelwood.vocabulary import load_vocabulary
from labelwood.vocabulary.concept import DEFINITION

pytest.importorskip("rdflib", reason="rdflib is not installed; pip install 'labelwood[skos]'")

SKOS = "http://www.w3.org/2004/02/skos/core#"
PREFIX = f"@prefix skos: <{SKOS}> .\n"
RDF = f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="{SKOS}">'
CONCEPT = '<skos:Concept rdf:about="http://x/a"><skos:prefLabel>a</skos:prefLabel>%s</skos:Concept></rdf:RDF>'
MANY = 30_000


@pytest.fixture
def asked():
    """The address of a server, and the paths that were asked for."""
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"@context": {}}')

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()


CONTEXTS = {
    "address": lambda url: url,
    "list": lambda url: [{}, url],
    "list in a list": lambda url: [[url]],
    "import": lambda url: {"@version": 1.1, "@import": url},
    "import in lists": lambda url: [[{"@version": 1.1, "@import": url}]],
    "context of a term": lambda url: {"t": {"@id": "http://x/t", "@context": [[url]]}},
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("make", CONTEXTS.values(), ids=list(CONTEXTS))
def test_no_context_is_fetched(tmp_path, asked, make, encoding):
    url, paths = asked
    names = {"@id": "http://x/a", f"{SKOS}prefLabel": "a", "t": {"@id": "http://x/b"}}
    (tmp_path / "v.jsonld").write_text(json.dumps({"@context": make(f"{url}/c"), **names}), encoding=encoding)
    with pytest.raises(FormatError, match="is not fetched"):
        load_vocabulary(tmp_path / "v.jsonld")
    assert paths == []


@pytest.mark.parametrize(
    "head", ['<!DOCTYPE r SYSTEM "%s/d">', '<?xml-stylesheet href="%s/s"?>', '<!DOCTYPE r PUBLIC "-//X//Y" "%s/p">']
)
def test_no_part_of_an_xml_file_is_fetched(tmp_path, asked, head):
    url, paths = asked
    (tmp_path / "v.rdf").write_text(head % url + RDF + CONCEPT % "", encoding="utf-8")
    assert len(load_vocabulary(tmp_path / "v.rdf")) == 1
    assert paths == []


TAGS = CONCEPT % ('<skos:definition rdf:parseType="Literal">x' + "<a/>" * MANY + "</skos:definition>")
MANY_XML_PREFIXES = RDF.replace(">", "".join(f' xmlns:p{n}="http://{n}"' for n in range(MANY)) + ">")
MANY_TURTLE_PREFIXES = "".join(f"@prefix p{n}: <http://{n}/> .\n" for n in range(MANY // 2))
ENTITY = f'<!DOCTYPE r [<!ENTITY a "{"a" * 999}">]>'
SLOW = {  # each took at least half a minute, or gigabytes, if rdflib read it as it is
    "lines": ("v.rdf", RDF + CONCEPT % ("<skos:definition>" + "a\n" * 10 * MANY + "</skos:definition>"), "definition"),
    "tags in an XML literal": ("v.rdf", RDF + TAGS, None),
    "prefixes of XML": ("v.rdf", MANY_XML_PREFIXES + CONCEPT % "", "more than 1000 prefixes"),
    "an entity": ("v.rdf", ENTITY + RDF + CONCEPT % ("<a>" + "&a;" * 5 * MANY + "</a>"), "entities|amplification"),
    "prefixes of Turtle": ("v.ttl", MANY_TURTLE_PREFIXES + PREFIX + '<http://x/a> skos:prefLabel "a" .', None),
    "a long line": ("v.nt", f'<http://x/a> <{SKOS}definition> "' + "\\\\" * 40 * MANY + '" .\n', "no concept"),
    "a line without end": ("v.nt", "<http://x/a>" + " " * 60 * MANY + "!", "not valid N-Triples"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "content", "message"), SLOW.values(), ids=list(SLOW))
def test_time_is_in_proportion_to_the_file(tmp_path, name, content, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    if message is None:
        assert len(load_vocabulary(tmp_path / name)) == 1
        return
    with pytest.raises(FormatError, match=message) as refused:
        load_vocabulary(tmp_path / name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.jsonld", '{"n": ' + "9" * 5000 + "}"),
        ("v.jsonld", "5"),
        ("v.jsonld", '"a text"'),
        ("v.nt", b"\xff\xfe"),
        ("v.rdf", '<?xml version="1.0" encoding="utf-16"?><a/>'),
        ("v.rdf", '<?xml version="1.0" encoding="shift_jis"?><a/>'),
        ("v.rdf", '<?xml version="1.0" encoding="nothing"?><a/>'),
    ],
)
def test_what_is_no_rdf_is_refused_in_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError) as refused:
        load_vocabulary(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_an_xml_literal_is_its_text(tmp_path):
    words = 'a <b xmlns:q="http://q">bold</b> &amp; <i><q:u xmlns:q="http://q">deep</q:u></i> text'
    literal = f'<skos:definition rdf:parseType="Literal" xml:lang="en">{words}</skos:definition>'
    nested = '<skos:related rdf:parseType="Resource"><skos:note>n</skos:note></skos:related>'
    (tmp_path / "v.rdf").write_text(RDF + CONCEPT % (literal + nested), encoding="utf-8")
    (concept,) = load_vocabulary(tmp_path / "v.rdf")
    found = [(text.language, text.text) for text in concept.texts if text.kind == DEFINITION]
    assert found == [("en", "a bold & deep text")]
