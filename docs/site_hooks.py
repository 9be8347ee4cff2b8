"""Hooks of the documentation site: the API page, the notebook's pages, and links between the two folders.

A link is written as it works in the repository: ``../notebook/papers.md`` from a page in ``docs``,
``../docs/results.md`` from a page in ``notebook``, ``gallery/tuning.py`` for a page of the gallery. On the site,
``notebook`` is a folder beside the pages of ``docs``.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import labelwood
from labelwood import params

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
NOTEBOOK = ROOT / "notebook"
GALLERY = ROOT / "build" / "gallery"  # made by tools/gallery.py
MODULES = ("data", "metrics", "size")
# The names of the package by topic, in the order of the API page. Names without a topic come last.
TOPICS = {
    "Texts": ("TextClassifier", "TfidfEncoder", "HashingEncoder", "VectorEncoder", "Embedded"),
    "Label trees": ("LinearTree", "OneVsRest"),
    "Models that learn from a stream": ("OnlineTree", "OnlineForest", "LivingTree"),
    "Forests": ("CraftForest", "FastXmlForest", "GraphForest", "LdsmForest", "label_neighbors"),
    "Several models as one": ("Blend", "Ranker"),
    "What all methods have": ("TreeEstimator", "load"),
    "Errors and warnings": ("LabelwoodError", "FormatError", "LabelwoodWarning"),
}
_SHOWN_DEFAULT = 60


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version at the foot of every page."""
    config.copyright = f"Labelwood {labelwood.__version__}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the API page and the notebook, and to the navigation the pages it does not name."""
    files.append(File.generated(config, "api.md", content=api_page()))
    for path in sorted(NOTEBOOK.rglob("*")):
        if path.is_file():
            uri = path.relative_to(ROOT).as_posix()
            files.append(File(uri, str(ROOT), config.site_dir, config.use_directory_urls))
    gallery = sorted(GALLERY.glob("*"))
    files_of_gallery = [path.relative_to(GALLERY.parent).as_posix() for path in gallery]
    for uri in files_of_gallery:
        files.append(File(uri, str(GALLERY.parent), config.site_dir, config.use_directory_urls))
    named = set(_paths(config.nav or []))
    missing = sorted(
        page.src_uri
        for page in files.documentation_pages()
        if page.src_uri not in named and page.inclusion.is_included()
    )
    of_methods = [uri for uri in missing if uri.startswith("notebook/methods/")]
    overview = GALLERY / "index.md"
    listed = overview.read_text(encoding="utf-8") if overview.exists() else ""
    in_order = sorted(
        files_of_gallery, key=lambda uri: listed.find(f"({Path(uri).name})")
    )  # the overview lists all others
    of_gallery = [uri for uri in in_order if uri in missing]
    others = [uri for uri in missing if uri not in of_methods and uri not in of_gallery]
    if config.nav is not None:
        if of_gallery:
            config.nav.insert(2, {"Gallery": of_gallery})
        [notebook] = [section["Notebook"] for section in config.nav if "Notebook" in section]
        notebook += [{"Methods": of_methods}] if of_methods else []
        config.nav += [{"More": others}] if others else []
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Rewrite links between ``docs`` and ``notebook``; a link to a file outside of both becomes its text."""
    source = page.file.abs_src_path
    if source is None:  # a generated page
        return markdown
    folder = Path(source).parent

    def on_site(link: re.Match[str]) -> str:
        text, path, anchor = link.groups(default="")
        target = (folder / path).resolve()
        if not path or not target.exists():
            return link[0]
        if target.is_relative_to(DOCS):
            uri = target.relative_to(DOCS).as_posix()
            if target.is_dir():
                uri = f"{uri}/index.md"
            elif target.parent.name == GALLERY.name and target.suffix == ".py":  # its page
                uri = f"{uri[:-3]}.md"
        elif target.is_relative_to(NOTEBOOK):
            uri = target.relative_to(ROOT).as_posix()
        elif target.is_relative_to(GALLERY):
            uri = target.relative_to(GALLERY.parent).as_posix()
        else:
            return text
        return f"[{text}]({os.path.relpath(uri, os.path.dirname(page.file.src_uri) or '.')}{anchor})"

    return re.sub(r"\[([^]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)", on_site, markdown)


def _paths(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    return [path for item in items for path in _paths(item)]


def api_page() -> str:
    """Every public name of the package by topic, with its parameters and its docstring."""
    lines = [
        "# API",
        "",
        "This page is made from the signatures and docstrings of the package. The tests run its examples.",
    ]
    known = {name for names in TOPICS.values() for name in names}
    more = tuple(name for name in labelwood.__all__ if name not in (*MODULES, "METHODS", *known))
    topics = TOPICS | ({"More": more} if more else {})
    lines += ["", "| topic | names |", "|---|---|"]
    for topic, names in topics.items():
        lines.append(
            f"| [{topic}](#{_anchor(topic)}) | {', '.join(f'[`{name}`](#{_anchor(name)})' for name in names)} |"
        )
    lines += [f"| [labelwood.{name}](#{_anchor('labelwood.' + name)}) | a module |" for name in MODULES]
    for topic, names in topics.items():
        lines += ["", f"## {topic}"]
        for name in names:
            lines += ["", f"### {name}", "", *_entry(f"labelwood.{name}", getattr(labelwood, name))]
    for name in MODULES:
        module = importlib.import_module(f"labelwood.{name}")
        lines += ["", f"## labelwood.{name}", "", *_text(module)]
        for public in getattr(module, "__all__", _functions(module)):
            thing = getattr(module, public)
            if callable(thing):
                lines += ["", f"### {name}.{public}", "", *_entry(f"labelwood.{name}.{public}", thing)]
    return "\n".join(lines) + "\n"


def _anchor(heading: str) -> str:
    """The anchor that the site gives a heading."""
    return re.sub(r"[^\w]+", "-", heading.lower().replace(".", "")).strip("-")


def _functions(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def _entry(path: str, thing: Any) -> list[str]:
    if not inspect.isclass(thing):
        return [*_signature(path, thing), *_text(thing)]
    lines = [f"`{path}`", "", *_text(thing)]
    if issubclass(thing, Exception):
        return lines
    lines += _parameters(thing)
    for name in _methods(thing):
        lines += ["", f"**{name}**", "", *_signature(f"{thing.__name__}.{name}", getattr(thing, name))]
        lines += _text(getattr(thing, name))
    return lines


def _methods(thing: type) -> list[str]:
    """Public methods; for a subclass of TreeEstimator, only those that TreeEstimator does not have."""
    base = labelwood.TreeEstimator
    shared = base if issubclass(thing, base) and thing is not base else object
    return [
        name
        for name, value in inspect.getmembers(thing, callable)
        if not name.startswith("_")
        and (getattr(value, "__module__", "") or "").startswith("labelwood")
        and getattr(value, "__func__", value) is not _function(shared, name)
    ]


def _function(owner: type, name: str) -> Any:
    value = getattr(owner, name, None)
    return getattr(value, "__func__", value)


def _parameters(thing: type) -> list[str]:
    try:
        found = params.declared(thing).values()
    except (KeyError, TypeError):  # a class without annotated parameters
        return []
    lines = [f"- `{p.name}`: {_sentence(p.param.help)} Takes {p.rule}; by default `{p.default!r}`." for p in found]
    return ["", "Parameters:", "", *lines] if lines else []


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _signature(path: str, thing: Any) -> list[str]:
    try:
        given = inspect.signature(thing)
    except (TypeError, ValueError):
        return []
    words = []
    for parameter in given.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        default = parameter.default
        shown = "" if default is inspect.Parameter.empty else f"={default!r}"
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        shown = shown if len(shown) < _SHOWN_DEFAULT else "=..."
        words.append(stars.get(parameter.kind, "") + parameter.name + shown)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.insert(len(words) - 1, "*")
    return ["```python", f"{path}({', '.join(words)})", "```", ""]


def _text(thing: Any) -> list[str]:
    """A docstring as Markdown: roles become code, examples become fenced blocks."""
    doc = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", inspect.getdoc(thing) or "")
    lines, inside = [], False
    for line in doc.splitlines():
        opens = line.startswith(">>>")
        if opens and not inside:
            lines += ["```pycon"]
        if inside and not line.strip():
            lines += ["```"]
        inside = opens or (inside and bool(line.strip()))
        lines.append(line)
    return [*lines, *(["```"] if inside else [])]
