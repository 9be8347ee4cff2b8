"""Show a tree of a model as a web page, as a Graphviz drawing or as JSON.

The page is a single file. It lets you walk down the tree and search for a label, and shows the size, the balance, the
labels and the most important words of every node.
"""

from __future__ import annotations

from pathlib import Path

from labelwood.cli.support.inputs import add_model_argument, language_flag, read_model
from labelwood.cli.support.output import open_output, print_facts
from labelwood.cli.support.parser import Options, Parser, UsageError
from labelwood.methods.text_classifier import estimator_of
from labelwood.viz.outline import Outline, outline
from labelwood.viz.render import to_dot, to_json, to_page

EXAMPLES = (
    "labelwood tree model --html tree.html",
    "labelwood tree model --dot tree.dot --depth 2 && dot -Tsvg tree.dot > tree.svg",
    "labelwood tree model --json > tree.json",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser, threads=False)
    for flag, what in (("--html", "a web page"), ("--dot", "a Graphviz drawing")):
        parser.value(flag, metavar="FILE", takes="a file", convert=Path, help=f"write {what} to this file")
    parser.count("--tree", default=1, help="number of the tree, counted from 1")
    parser.count("--depth", default=2, help="depth of the Graphviz drawing")
    language_flag(parser)
    parser.add_argument("--json", action="store_true", help="print the whole tree as JSON")


def run(options: Options) -> int:
    """Outline the tree and write it in the formats asked for."""
    if not (options.html or options.dot or options.json):
        raise UsageError("labelwood tree: one of --html FILE, --dot FILE and --json is needed")
    if not options.dot:
        options.refuse(["--depth"], "it needs --dot")
    model = read_model(options)
    found = outline(
        estimator_of(model), tree=options.tree - 1, feature_name=model.feature_namer(), language=options.language
    )
    if options.html:
        _write(options.html, to_page(found, title=Path(options.model).name))
    if options.dot:
        _write(options.dot, to_dot(found, depth=options.depth))
    if options.json:
        print(to_json(found))
    else:
        _print(found, options)
    return 0


def _write(path: Path, text: str) -> None:
    with open_output(path) as file:
        file.write(text)


def _print(found: Outline, options: Options) -> None:
    files = {name: str(getattr(options, name)) for name in ("html", "dot") if getattr(options, name)}
    print_facts({**files, "tree": f"{found.tree + 1} of {found.n_trees}", "nodes": found.n_nodes})
