"""The demo's data: real text that every machine with Python has, its own source code.

A function of the standard library, or of a package Labelwood needs, is a document: its name and its docstring
are the text, the names it calls are its labels. The body itself is never part of the text, so a model must
learn from what a function says it does which functions it uses.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sysconfig
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("numpy", "scipy", "sklearn", "joblib", "threadpoolctl")
MIN_CALLS = 3
TEST_SHARE = 0.2

# Tests repeat the same three assertions; the others belong to whoever else uses this Python.
_SKIPPED = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__"})
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop)
_WORD_BORDER = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Function(NamedTuple):
    """One document: where it is from, its text, and the names it calls in alphabetical order."""

    origin: str
    text: str
    labels: tuple[str, ...]


class Corpus(NamedTuple):
    """The functions to learn from and those held out, disjoint in text."""

    train: list[Function]
    test: list[Function]


def source_files() -> list[tuple[str, Path]]:
    """The Python files to read, each with the dotted name of its module, in a fixed order."""
    found = list(_files_below(Path(sysconfig.get_paths()["stdlib"]), ()))
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        if spec.submodule_search_locations:
            found.extend(_files_below(origin.parent, (package,)))
        else:
            found.append((package, origin))
    return found


def _files_below(root: Path, prefix: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    paths = ((path.relative_to(root).with_suffix("").parts, path) for path in root.rglob("*.py"))
    for parts, path in sorted(paths):
        if not _SKIPPED.intersection(parts):
            yield ".".join(prefix + parts).removesuffix(".__init__"), path


def read_functions(
    files: Iterable[tuple[str, Path]], progress: Callable[[int], None] | None = None
) -> list[Function]:
    """Every function of the files that calls something; ``progress`` is told how many files are done."""
    found: list[Function] = []
    for done, (module, path) in enumerate(files):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # old code with odd escapes is none of the reader's business
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):
            continue  # a file this Python cannot read teaches nothing
        _collect(tree.body, module, set(), found)
        if progress is not None:
            progress(done + 1)
    return found


def _collect(nodes: Iterable[ast.AST], origin: str, calls: set[str], found: list[Function]) -> None:
    """Add the names called in the nodes to ``calls``; append the functions met on the way to ``found``."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own: set[str] = set()
            # The body only: decorators and defaults are evaluated around the function, not by it.
            _collect(node.body, f"{origin}.{node.name}", own, found)
            if own:
                found.append(Function(f"{origin}.{node.name}", describe(node), tuple(sorted(own))))
            calls |= own
            continue
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                calls.add(node.func.id)
            elif isinstance(node.func, ast.Attribute):
                calls.add(node.func.attr)
        inside = f"{origin}.{node.name}" if isinstance(node, ast.ClassDef) else origin
        _collect(_children(node), inside, calls, found)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that may hold a call; ``ast.iter_child_nodes`` spends its time on the others."""
    for value in vars(node).values():
        if isinstance(value, list):
            yield from (part for part in value if isinstance(part, ast.AST) and not isinstance(part, _LEAVES))
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            yield value


def describe(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function's name as words, then its docstring.

    >>> describe(ast.parse('def parseHTTP_date(text):\\n    "When it was sent."').body[0])
    'parse HTTP date. When it was sent.'
    """
    name = " ".join(_WORD_BORDER.sub(" ", node.name).split())
    return f"{name}. {ast.get_docstring(node) or ''}".strip()


def assemble(functions: Iterable[Function], *, seed: int = 0) -> Corpus:
    """Drop rare labels, what is left without any and what was seen before; split by a hash of the text.

    A copied function must not sit on both sides, so equal texts go to the same side whatever their labels.
    """
    distinct = list({(f.text, f.labels): f for f in reversed(list(functions))}.values())[::-1]
    counts = Counter(label for function in distinct for label in function.labels)
    corpus = Corpus([], [])
    for function in distinct:
        labels = tuple(label for label in function.labels if counts[label] >= MIN_CALLS)
        if labels:
            side = corpus.test if _held_out(function.text, seed) else corpus.train
            side.append(function._replace(labels=labels))
    return corpus


def _held_out(text: str, seed: int) -> bool:
    digest = hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8, salt=seed.to_bytes(16, "little")
    )
    return int.from_bytes(digest.digest(), "little") < TEST_SHARE * 2**64
