"""Vocabularies as SKOS, with rdflib as the oracle; malformed and hostile files."""

import pytest

from labelwood.errors import FormatError, LabelwoodError
from labelwood.vocabulary import Concept, Vocabulary, load_vocabulary, read_vocabulary, save_vocabulary
from labelwood.vocabulary.concept import BROADER, NOTATION, PREFERRED, Link, Text

rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed; pip install 'labelwood[skos]'")
from rdflib.compare import isomorphic  # noqa: E402
from rdflib.namespace import SKOS  # noqa: E402

SUFFIXES = [".ttl", ".rdf", ".jsonld", ".nt", ".ttl.gz"]
EX = "http://example.org/"
HEAD = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://example.org/> .\n"
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">'
CONCEPT = (
    '<skos:Concept rdf:about="http://example.org/a"><skos:prefLabel xml:lang="en">%s</skos:prefLabel></skos:Concept>'
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_syntax_holds_everything(animals, tmp_path, suffix):
    path = tmp_path / f"animals{suffix}"
    save_vocabulary(animals, path)
    assert load_vocabulary(path) == animals


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of rdflib, about itself
@pytest.mark.parametrize("suffix", SUFFIXES[:-1])
def test_rdflib_reads_the_same_statements_in_every_syntax(animals, tmp_path, suffix):
    save_vocabulary(animals, tmp_path / "one.ttl")
    save_vocabulary(animals, tmp_path / f"two{suffix}")
    one = rdflib.Graph().parse(tmp_path / "one.ttl")
    two = rdflib.Graph().parse(tmp_path / f"two{suffix}")
    assert isomorphic(one, two)
    cat = rdflib.URIRef(EX + "cat")
    assert (cat, SKOS.prefLabel, rdflib.Literal("kissa", lang="fi")) in two
    assert (cat, SKOS.broader, rdflib.URIRef(EX + "animal")) in two


def yso(path):
    """YSO's names in three languages, from the label file of the data set."""
    columns = ["uri", "label_fi", "alt_fi", "label_en", "label_sv", "count"]
    found = load_vocabulary(path / "labels.tsv", columns=columns)
    return Vocabulary.of(
        Concept(concept.uri.replace("yso:", "http://www.yso.fi/onto/yso/"), concept.texts) for concept in found
    )


def eurovoc(path):
    """EuroVoc's concepts with their parents, from the label file of the data set."""
    names = dict(line.split("\t", 1) for line in (path / "labels.txt").read_text("utf-8").splitlines())
    pairs = [line.split() for line in (path / "eurovoc_parents.txt").read_text("utf-8").splitlines()]
    base = "http://eurovoc.europa.eu/"
    parents = {child: [Link(BROADER, base + parent) for parent in rest if parent] for child, *rest in pairs}
    return Vocabulary.of(
        Concept(base + key, (Text(PREFERRED, "en", name.strip()),), tuple(parents.get(key, [])))
        for key, name in names.items()
    )


@pytest.mark.parametrize(("data", "make"), [("yso_finna_fi_full", yso), ("eurlex57k", eurovoc)])
def test_a_real_vocabulary_is_read_written_and_read_again_without_loss(real_data, tmp_path, data, make):
    whole = make(real_data(data))
    assert len(whole) > 4000
    part = Vocabulary.of(list(whole)[:: len(whole) // 2000])  # rdflib takes a millisecond per statement
    # The oracle: a graph that rdflib wrote, not this library.
    graph = rdflib.Graph()
    for concept in part:
        subject = rdflib.URIRef(concept.uri)
        graph.add((subject, rdflib.RDF.type, SKOS.Concept))
        for text in concept.texts:
            kind = SKOS.prefLabel if text.kind == PREFERRED else SKOS.altLabel
            graph.add((subject, kind, rdflib.Literal(text.text, lang=text.language or None)))
        for uri in concept.linked(BROADER):
            graph.add((rdflib.URIRef(uri), SKOS.narrower, subject))
            graph.add((subject, SKOS.broader, rdflib.URIRef(uri)))
    graph.serialize(tmp_path / "given.ttl", format="turtle")
    first = load_vocabulary(tmp_path / "given.ttl")
    assert first == part
    save_vocabulary(first, tmp_path / "written.nt")
    assert load_vocabulary(tmp_path / "written.nt") == first
    written = rdflib.Graph().parse(tmp_path / "written.nt")
    graph.remove((None, SKOS.narrower, None))  # it says the same as skos:broader
    assert set(written) == set(graph)
    save_vocabulary(whole, tmp_path / "whole.csv")
    assert load_vocabulary(tmp_path / "whole.csv") == whole


def test_narrower_replaces_and_plain_labels(tmp_path):
    (tmp_path / "v.ttl").write_text(
        HEAD + "@prefix dct: <http://purl.org/dc/terms/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ':a a skos:Concept ; rdfs:label "A"@en ; skos:narrower :b ; dct:replaces :c .'
        ':b skos:prefLabel "B"@en-GB, "b2"@en-gb . :c a skos:Concept ; owl:deprecated true .'
        '[] a skos:Concept ; skos:prefLabel "nobody" . :d rdfs:label "no concept" .'
    )
    found, remarks = read_vocabulary(tmp_path / "v.ttl")
    assert [concept.uri for concept in found] == [EX + "a", EX + "b", EX + "c"]
    assert found.name(0, "en") == "A"
    assert found.linked(1) == [0]
    assert found.current(2) == 0
    assert found.name(1, "en-gb") == "B"
    assert remarks[0] == "1 concepts without a URI are left out"
    assert any("1 preferred names stand beside another" in remark for remark in remarks)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.ttl", HEAD + ':a a skos:Concept ;\n skos:prefLabel "x .\n', "line 3: not valid Turtle"),
        ("v.ttl", HEAD + ":a a skos:Concept ; ; foo:bar 1 .", 'line 2: not valid Turtle (Prefix "foo:" not bound)'),
        ("v.rdf", RDF + "\n<skos:Concept>\n</rdf:RDF>", "line 3: not valid RDF/XML (mismatched tag)"),
        ("v.jsonld", '{"@id": "x",\n "y": }', "line 2: not valid JSON-LD"),
        ("v.nt", "<http://x/a> <http://x/b> <http://x/c> .\nnonsense\n", "line 2: not valid N-Triples"),
        ("v.ttl", "", "there is no concept"),
        ("v.ttl", HEAD + ":a :b :c .", "there is no concept"),
        ("v.ttl", HEAD + ':a skos:prefLabel "%s" .' % ("x" * 1_000_000), "example.org/a: a preferred name must"),
        ("v.ttl", HEAD + ':a skos:prefLabel "\\uD800" .', "example.org/a: a preferred name must not"),
        ("v.jsonld", '{"@id": "x:a", "' + str(SKOS) + 'prefLabel": "\\ud800"}', "lone surrogates"),
        ("v.ttl", HEAD + ":a :b " + "[ :b " * 100_000 + "1" + " ]" * 100_000 + " .", "the Turtle is nested too deeply"),
        ("v.jsonld", "[" * 200_000 + "]" * 200_000, "nested too deeply"),
        ("v.rdf", RDF + CONCEPT % "&#0;" + "</rdf:RDF>", "line 1: not valid RDF/XML"),
    ],
)  # fmt: skip
def test_a_malformed_file_gives_one_line_with_the_place(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError) as error:
        load_vocabulary(tmp_path / name)
    assert str(error.value).startswith(str(tmp_path / name))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


def test_nested_xml_without_end_is_read(tmp_path):
    """Elements as deep as a file makes them are a matter of rdflib's own stack, not of Python's."""
    deep = "<skos:Concept><skos:related>" * 20_000 + "</skos:related></skos:Concept>" * 20_000
    (tmp_path / "v.rdf").write_text(RDF + CONCEPT % "A" + deep + "</rdf:RDF>")
    assert len(load_vocabulary(tmp_path / "v.rdf")) == 1


LAUGHS = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))


@pytest.mark.parametrize(
    "entities",
    [
        '<!ENTITY l0 "lol">' + LAUGHS,
        '<!ENTITY l9 SYSTEM "file:///etc/passwd">',
        '<!ENTITY % p SYSTEM "http://127.0.0.1:9/x">%p;<!ENTITY l9 "x">',
        '<!ENTITY l9 "' + "x" * 100_000 + '">',
    ],
)
def test_hostile_entities_are_refused(tmp_path, entities):
    (tmp_path / "v.rdf").write_text(f"<!DOCTYPE rdf:RDF [{entities}]>" + RDF + CONCEPT % "&l9;" + "</rdf:RDF>")
    with pytest.raises(FormatError, match=r"line 1: the entity .* is refused"):
        load_vocabulary(tmp_path / "v.rdf")


def test_a_plain_entity_as_editors_write_it_is_read(tmp_path):
    document = '<!DOCTYPE rdf:RDF [<!ENTITY name "cat">]>' + RDF + CONCEPT % "&name;" + "</rdf:RDF>"
    (tmp_path / "v.rdf").write_text(document)
    assert load_vocabulary(tmp_path / "v.rdf").name(0) == "cat"


@pytest.mark.parametrize(
    "context", ['"http://127.0.0.1:9/c"', '[{}, "file:///etc/passwd"]', '{"@import": "http://127.0.0.1:9/c"}']
)
def test_a_remote_context_is_not_fetched(tmp_path, context):
    (tmp_path / "v.jsonld").write_text('{"@graph": [{"@context": ' + context + ', "@id": "http://x/a"}]}')
    with pytest.raises(FormatError, match=r"the remote context .* is not fetched"):
        load_vocabulary(tmp_path / "v.jsonld")


@pytest.mark.parametrize("suffix", [".nt", ".ttl"])
@pytest.mark.parametrize(
    ("kind", "number"),
    [("integer", "007"), ("decimal", "1E300000000"), ("decimal", "1E-300000000"), ("double", "1E400")],
)
def test_a_number_stays_as_it_is_written(tmp_path, suffix, kind, number):
    """A hundred bytes must not become a number of 300 million digits."""
    path, skos = tmp_path / f"v{suffix}", "http://www.w3.org/2004/02/skos/core#"
    path.write_text(
        f'<http://x/a> <{skos}prefLabel> "a" .\n'
        f'<http://x/a> <{skos}notation> "{number}"^^<http://www.w3.org/2001/XMLSchema#{kind}> .\n'
    )
    (concept,) = load_vocabulary(path)
    assert [text.text for text in concept.texts if text.kind == NOTATION] == [number]


def test_keys_that_are_not_uris_need_a_table(tmp_path):
    with pytest.raises(LabelwoodError, match="SKOS needs URIs, but a key is 'tax law'"):
        save_vocabulary(Vocabulary.of([Concept("tax law")]), tmp_path / "v.ttl")
    assert not (tmp_path / "v.ttl").exists()
