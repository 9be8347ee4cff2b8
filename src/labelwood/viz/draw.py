"""Figures drawn with matplotlib, which is an extra."""

from __future__ import annotations

from pathlib import Path

from labelwood.errors import LabelwoodError
from labelwood.storage.atomic import atomic_file
from labelwood.viz.curves import Figure


def draw(figure: Figure, path: Path, *, title: str) -> None:
    """Write a figure to a file; the suffix says the format, such as .png, .svg or .pdf."""
    try:
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise LabelwoodError("plot: matplotlib is needed; pip install 'labelwood[plots]'") from None
    canvas = Canvas(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    for curve in figure.curves:
        axes.plot(curve.x, curve.y, marker="o", markersize=4, label=curve.name)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, alpha=0.2)
    if figure.log_x:
        axes.set_xscale("log")
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    kind = path.suffix.removeprefix(".").lower() or "png"
    if kind not in canvas.canvas.get_supported_filetypes():
        raise LabelwoodError(
            f"plot: the file must end in .png, .svg, .pdf or another format of matplotlib; got {path.name}"
        )
    with atomic_file(path) as file:
        canvas.savefig(file, format=kind, dpi=150)
