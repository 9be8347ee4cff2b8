"""The data of the demo: the source code of this Python, real text that every machine has.

A document is a function of the standard library or of a package that Labelwood needs. Its name and docstring are the
text, the names of the functions that it calls are the labels. The body is not part of the text: a model has to infer
from the description of a function which functions it calls.
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

# Tests repeat the same few assertions; other packages differ from machine to machine.
_SKIPPED = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__"})
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop)
_WORD_BORDER = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Function(NamedTuple):
    """One document: its origin, its text, and the names it calls in alphabetical order."""

    origin: str
    text: str
    labels: tuple[str, ...]


class Corpus(NamedTuple):
    """Training functions and held-out functions; no text is in both."""

    train: list[Function]
    test: list[Function]


def source_files() -> list[tuple[str, Path]]:
    """Return the Python files to read, each with the dotted name of its module, in a fixed order."""
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


def read_functions(files: Iterable[tuple[str, Path]], progress: Callable[[int], None] | None = None) -> list[Function]:
    """Return every function that calls another one; ``progress`` is called with the number of files read."""
    found: list[Function] = []
    for done, (module, path) in enumerate(files):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as invalid escapes in old code
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):
            continue  # this Python cannot parse the file
        _collect(tree.body, module, set(), found)
        if progress is not None:
            progress(done + 1)
    return found


def _collect(nodes: Iterable[ast.AST], origin: str, calls: set[str], found: list[Function]) -> None:
    """Add the names that the nodes call to ``calls``, and the functions that they define to ``found``."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own: set[str] = set()
            # Only the body: decorators and defaults are not evaluated by the function itself.
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
    """Yield the parts of a node that may contain a call; faster than ``ast.iter_child_nodes``."""
    for value in vars(node).values():
        if isinstance(value, list):
            yield from (part for part in value if isinstance(part, ast.AST) and not isinstance(part, _LEAVES))
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            yield value


def describe(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the name of a function as words, followed by its docstring.

    >>> describe(ast.parse('def parseHTTP_date(text):\\n    "When it was sent."').body[0])
    'parse HTTP date. When it was sent.'
    """
    name = " ".join(_WORD_BORDER.sub(" ", node.name).split())
    return f"{name}. {ast.get_docstring(node) or ''}".strip()


def assemble(functions: Iterable[Function], *, seed: int = 0) -> Corpus:
    """Drop duplicates, rare labels and functions without labels; split the rest by a hash of the text.

    Equal texts go to the same side whatever their labels, so that no copied function is in both.
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
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=seed.to_bytes(16, "little"))
    return int.from_bytes(digest.digest(), "little") < TEST_SHARE * 2**64
