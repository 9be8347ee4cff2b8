"""The documentation is true: links lead somewhere, Python blocks run, commands and flags exist."""

import functools
import re
import shlex
import shutil

import pytest
from pages import ROOT, blocks, run_python

from labelwood import METHODS, TextClassifier, data
from labelwood.cli import COMMANDS, parser_of
from labelwood.data.synth import Shape, synth
from labelwood.text import ENCODERS

DOCS, NOTEBOOK = ROOT / "docs", ROOT / "notebook"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *NOTEBOOK.rglob("*.md")])
GENERATED = {DOCS / "api.md"}  # docs/site_hooks.py
# Pages whose blocks run as scripts in tests/docs/test_scripts.py and tests/adapters/test_integrations.py
ELSEWHERE = {
    "README.md",
    "index.md",
    "embeddings.md",
    "memory.md",
    "metrics.md",
    "scale.md",
    "guide.md",
    "recipes.md",
    "cli.md",
    "service.md",
    "review.md",
    "integrations.md",
    "moving-from-annif.md",
    "vocabularies.md",
}
DOCUMENTS = """id,title,body,tags
1,Cats and dogs,How the two get along,pets;animals
2,Income tax,What changed in income tax this year,law;money
3,A court on tax,The court decided on the income tax,law;money
4,Dogs,A dog at home,pets;animals
"""
KNOWN = """
import numpy as np
from labelwood import LinearTree
X = np.eye(4, dtype=np.float32)
Y = [["red"], ["red"], ["green"], ["blue"]]
"""


def name_of(page):
    return str(page.relative_to(ROOT))


def slug(title):
    """The anchor of a heading, as MkDocs makes it."""
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def prose(text):
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text(encoding="utf-8"))):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        leads = (page.parent / path).resolve() if path else page
        assert leads.exists() or leads in GENERATED, f"{name_of(page)}: {target} leads nowhere"
        if anchor:
            titles = re.findall(r"^#+ (.+)$", leads.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in map(slug, titles), f"{name_of(page)}: {target} names no heading"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A folder with the files that the examples speak of."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "docs.csv").write_text(DOCUMENTS)
    documents = data.load_text(folder / "docs.csv")
    TextClassifier().fit(documents.texts, documents.labels).save(folder / "model")
    made = synth(Shape(n_rows=200, n_labels=20, n_features=300, branching=2, levels=2))
    for part in ("train", "test"):
        data.save(folder / f"{part}.txt.xz", made)
    return folder


RUNNABLE = [
    (page, number)
    for page in PAGES
    if page.name not in ELSEWHERE
    for number in range(len(blocks(page.read_text(encoding="utf-8"), "python")))
]


@pytest.mark.parametrize(("page", "number"), RUNNABLE, ids=[f"{name_of(p)}-{n}" for p, n in RUNNABLE])
def test_python_blocks_run(page, number, reader, tmp_path):
    text = page.read_text(encoding="utf-8")
    own = shutil.copytree(reader, tmp_path / "reader")
    printed = run_python(KNOWN + blocks(text, "python")[number], own)
    promised = blocks(text, "text")
    if promised:
        assert printed == promised[number]


@functools.cache
def flags(command):
    """Every flag of a command, whatever method or encoder it is used with."""
    methods, encoders = (["--method", name] for name in METHODS), (["--encoder", name] for name in ENCODERS)
    wordings = [[], *methods, *encoders] if command in ("train", "estimate") else [[]]
    return {
        flag for words in wordings for action in parser_of(command, words)._actions for flag in action.option_strings
    }


def commands(text):
    """Lines that call us, of blocks that are not another language; several may share a line."""
    for code in (code for language in ("", "sh", "console", "usage") for code in blocks(text, language)):
        for line in code.replace("\\\n", " ").splitlines():
            for part in re.split(r"[|;]| && |\$\(", line):
                if re.match(r"\s*(\$ )?labelwood [a-z]", part):
                    yield part.strip().removeprefix("$ ").rstrip(")\"' ")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_flags_exist(page):
    for line in commands(page.read_text(encoding="utf-8")):
        words = re.sub(r"[\[\]]", " ", line.partition("  #")[0])
        try:
            parts = shlex.split(words)
        except ValueError:  # a quotation that the split at ; or | has cut
            parts = words.split()
        command, given = (parts[1], [part.partition("=")[0] for part in parts[2:] if re.match(r"--?[a-zA-Z]", part)])
        assert command in COMMANDS, f"{name_of(page)}: {line}"
        unknown = [flag for flag in given if flag not in flags(command)]
        assert not unknown, f"{name_of(page)}: {line}: {unknown}"


def test_the_navigation_names_every_page():
    """The notebook is a folder of the site; the site's hook adds its pages on methods."""
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [page.relative_to(DOCS) for page in (*DOCS.rglob("*.md"), *GENERATED)]
    pages += [page.relative_to(ROOT) for page in NOTEBOOK.rglob("*.md") if page.parent != NOTEBOOK / "methods"]
    assert sorted(named) == sorted(page.as_posix() for page in pages)
