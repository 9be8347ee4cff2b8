"""The pages for users run as scripts: every file, command and Python block in order, with the output they promise.

The blocks of docs/integrations.md run in tests/adapters/test_integrations.py, with the tools that they need.
"""

import json
import shutil

import numpy as np
import pytest
from page_script import matches, page_blocks, page_script
from pages import ROOT
from unshown_outputs import UNSHOWN

from labelwood import data
from labelwood.cli import COMMANDS
from labelwood.data.synth import Shape, synth

PAGES = (
    "README.md",
    "index.md",
    "guide.md",
    "recipes.md",
    "cli.md",
    "moving-from-annif.md",
    "vocabularies.md",
    "embeddings.md",
    "service.md",
    "runbook.md",
    "review.md",
    "memory.md",
    "metrics.md",
    "scale.md",
)
# "usage" and "py" are only read: a synopsis, or what needs a cluster, a package or a model that is not there.
LANGUAGES = {"sh", "python", "py", "usage", "csv", "text", "json", "ini", "nginx", "yaml"}


def blocks_of(page):
    path = ROOT / page if page == "README.md" else ROOT / "docs" / page
    return page_blocks(path.read_text(encoding="utf-8"))


def docs_csv():
    """The table of the guide, which the other pages speak of."""
    return next(block.code for block in blocks_of("guide.md") if block.title == "docs.csv")


def write_files(folder):
    """The files that a reader of these pages has."""
    (folder / "docs.csv").write_text(docs_csv())
    (folder / "new.csv").write_text("id,title,body\n11,A dog,A dog at home\n12,Tax,The court on income tax\n")
    (folder / "letters.txt").write_text("The court decided on the income tax\nDolphins and whales in the ocean\n")
    (folder / "today.csv").write_text("id,title,body,tags\n" + "13,A virus,The virus spreads,covid;health\n" * 3)
    (folder / "annif-corpus.tsv").write_text("cats and dogs\t<http://a/pets>\nincome tax\t<http://a/law>\n")
    (folder / "train.ft").write_text("__label__pets cats and dogs\n__label__law income tax\n")
    np.save(folder / "docs.npy", np.random.default_rng(0).standard_normal((10, 8)).astype(np.float32))
    groups = {"nature": ["pets", "animals"], "society": ["law", "money"]}
    (folder / "thesaurus.json").write_text(json.dumps(groups))
    shutil.copytree(ROOT / "tests/importing/models/omikuji", folder / "omikuji-model")
    made = synth(Shape(n_rows=300, n_labels=20, n_features=300, branching=2, levels=2))
    for name in ("rows.txt.xz", "train.txt.xz", "held-out.txt.xz", "big.txt.gz"):
        data.save(folder / name, made)
    for name in ("held-out.csv", "more.csv"):
        (folder / name).write_text(docs_csv())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_a_script(page, tmp_path):
    write_files(tmp_path)
    with page_script(tmp_path) as script:
        for block in blocks_of(page):
            assert block.language in LANGUAGES, f"{page}, line {block.line}: a block without a known language"
            printed = script.run(block)
            if block.runs and block.promised is None:
                unshown = unshown_of(page, block)
                assert matches(unshown.prints, printed), f"{page}, line {block.line} prints\n{printed}"
                assert [name for name in unshown.writes if not (tmp_path / name).exists()] == []


def unshown_of(page, block):
    """What a block prints and writes if the page does not show it."""
    known = [found for start, found in UNSHOWN.get(page, {}).items() if block.code.startswith(start)]
    assert len(known) == 1, f"{page}, line {block.line}: show what the block prints, or list it in unshown_outputs.py"
    return known[0]


def test_no_page_with_commands_is_left_out():
    """Every page for users whose blocks are commands runs here, or with the tools that it needs."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "methods").glob("*.md")]
    runs = {
        page.name
        for page in pages
        if any(block.runs and block.language == "sh" for block in page_blocks(page.read_text(encoding="utf-8")))
    }
    assert runs == {*PAGES, "integrations.md"} - {"metrics.md"}
    for page in pages:
        languages = {block.language for block in page_blocks(page.read_text(encoding="utf-8"))}
        assert languages <= LANGUAGES, page


def test_every_block_that_is_not_shown_is_on_its_page():
    for page, listed in UNSHOWN.items():
        silent = [block.code for block in blocks_of(page) if block.runs and block.promised is None]
        assert [start for start in listed if not any(code.startswith(start) for code in silent)] == []


def test_the_page_of_commands_runs_every_command():
    """Every command of the page has an example that runs."""
    lines = [line for block in blocks_of("cli.md") if block.language == "sh" for line in block.code.splitlines()]
    assert {name for name in COMMANDS if any(f"labelwood {name} " in f"{line} " for line in lines)} == set(COMMANDS)


def test_what_counts_as_promised():
    assert matches("a ...\nb\n", "a  1 2\nb")
    assert matches("a\n...\nz", "a\nb\nc\nz\n")
    assert not matches("a\nb", "a\nc")
    assert not matches("a", "a\nb")
    assert not matches("", "a")
