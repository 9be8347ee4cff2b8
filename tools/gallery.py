"""Run the scripts of docs/gallery and write each as a page with its output and its plots, and a page that lists them.

    python tools/gallery.py build/gallery

A script is in jupytext's percent format: ``# %%`` begins a cell of code, ``# %% [markdown]`` a cell of text. Any editor
that knows the format opens it as a notebook.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

HOME = Path(__file__).resolve().parents[1] / "docs" / "gallery"
ORDER = (
    "text_to_tags", "choosing_a_method", "tuning", "tail_labels", "label_texts", "thresholds", "explain", "streaming",
    "service", "distributed",
)  # fmt: skip


def cells(source: str) -> list[tuple[str, str]]:
    """Kind (``text`` or ``code``) and content of every cell of a script."""
    found = []
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            found.append(("text", re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()))
        else:
            found.append(("code", body.strip()))
    return found


def page(script: Path, target: Path) -> str:
    """Run a script; return its page. Plots become files beside it."""
    lines: list[str] = []
    space: dict[str, Any] = {"__name__": "__main__"}
    plots = 0
    for kind, content in cells(script.read_text(encoding="utf-8")):
        if kind == "text":
            lines += [content, ""]
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(content, str(script), "exec"), space)
        lines += ["```python", content.replace("\nplt.show()", ""), "```", ""]
        if output.getvalue():
            lines += ["```text", output.getvalue().rstrip(), "```", ""]
        for number in plt.get_fignums():
            plots += 1
            name = f"{script.stem}-{plots}.png"
            plt.figure(number).savefig(target / name, dpi=100, bbox_inches="tight")
            lines += [f"![{script.stem.replace('_', ' ')}]({name})", ""]
        plt.close("all")
    return "\n".join([*lines, f"The script is [{script.name}]({script.name}).", ""])


def overview() -> str:
    """The page that lists all scripts: title, first paragraph and first plot of each."""
    lines = [
        "# Gallery",
        "",
        "Each page is a script that runs on its own, with what it prints and plots.",
        "",
        "| task | plot |",
        "|---|---|",
    ]
    for name in ORDER:
        [(_, opening), *_] = cells((HOME / f"{name}.py").read_text(encoding="utf-8"))
        title, words = opening.removeprefix("# ").split("\n\n")[:2]
        plot = f"[![{title}]({name}-1.png){{ width=260 }}]({name}.md)"
        lines.append(f"| **[{title}]({name}.md)**<br>{' '.join(words.split())} | {plot} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run all scripts in their order and write the pages."""
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HOME))
    plt.show = lambda *args, **options: None  # type: ignore[assignment]
    (target / "index.md").write_text(overview(), encoding="utf-8")
    for name in ORDER:
        started = time.process_time()
        (target / f"{name}.md").write_text(page(HOME / f"{name}.py", target), encoding="utf-8")
        print(f"gallery: {name} {time.process_time() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
