"""An outline as a page to walk through, as a drawing for Graphviz, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from labelwood.viz.outline import Outline

_DATA = "/*DATA*/"
_SHOWN_WORDS = 4


def to_page(outline: Outline, *, title: str) -> str:
    """One HTML page that holds everything it needs; children are drawn when a node is opened."""
    words = sorted({word for node in outline.words for word, _ in node})
    number = {word: place for place, word in enumerate(words)}
    compact: dict[str, Any] = {
        **asdict(outline),
        "title": title,
        "vocabulary": words,
        "words": [[[number[word], weight] for word, weight in node] for node in outline.words],
    }
    # "</script>" within a label must not end the script
    data = json.dumps(compact, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    template = (files("labelwood.viz") / "page.html").read_text(encoding="utf-8")
    return template.replace(_DATA, data.replace("<!--", "<\\u0021--"), 1)


def to_json(outline: Outline) -> str:
    """The outline as one JSON object."""
    return json.dumps(asdict(outline), ensure_ascii=False)


def to_dot(outline: Outline, *, depth: int) -> str:
    """The tree down to a depth for Graphviz; what lies below is left out."""
    lines = ["digraph tree {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    level = [0]
    for remaining in range(depth, -1, -1):
        following: list[int] = []
        for node in level:
            lines.append(f"  n{node} [label={_quoted(_caption(outline, node))}];")
            if remaining:
                children = range(outline.child_ptr[node], outline.child_ptr[node + 1])
                lines += [f"  n{node} -> n{child};" for child in children]
                following += children
        level = following
    return "\n".join([*lines, "}", ""])


def _caption(outline: Outline, node: int) -> str:
    if outline.label[node] >= 0:
        return outline.label_names[outline.label[node]]
    words = ", ".join(word for word, _ in outline.words[node][:_SHOWN_WORDS])
    return f"{outline.size[node]} {outline.kind}" + (f"\n{words}" if words else "")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
