"""Figures drawn with matplotlib, which is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.storage.atomic import atomic_file
from labelwood.viz.curves import Curve, Figure

_RATIO = 10  # from this ratio of the largest to the smallest x on, a logarithmic axis spaces x better
_BARS = 0.8  # the width of all bars of one x
_TICKS = 8  # at most, on a linear axis
_DECADES = 3  # a longer logarithmic axis has ticks at powers of ten only


def draw(figure: Figure, path: Path, *, title: str) -> None:
    """Write a figure to a file; the suffix says the format, such as .png, .svg or .pdf."""
    canvas = drawn(figure, title=title)
    kind = path.suffix.removeprefix(".").lower() or "png"
    if kind not in canvas.canvas.get_supported_filetypes():
        raise LabelwoodError(
            f"plot: the file must end in .png, .svg, .pdf or another format of matplotlib; got {path.name}"
        )
    with atomic_file(path) as file:
        canvas.savefig(file, format=kind, dpi=150)


def drawn(figure: Figure, *, title: str) -> Any:
    """The matplotlib figure: measured points with their intervals, bars for counts, dashed lines for references."""
    try:
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise LabelwoodError("plot: matplotlib is needed; pip install 'labelwood[plots]'") from None
    canvas = Canvas(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    bars = [curve for curve in figure.curves if curve.kind == "bars"]
    for curve in figure.curves:
        if curve.kind == "reference":
            axes.plot(curve.x, curve.y, linestyle="--", color="gray", linewidth=1, label=curve.name)
        elif curve.kind == "bars":
            width = _BARS / len(bars)
            shift = (bars.index(curve) - (len(bars) - 1) / 2) * width
            axes.bar(np.add(curve.x, shift), curve.y, width, label=curve.name)
        else:
            _plot_points(axes, curve)
    _set_x_ticks(axes, figure)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, title=title)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend()
    return canvas


def _plot_points(axes: Any, curve: Curve) -> None:
    """Draw points, the line between them, and the interval of each: a band, or a bar if there is one point."""
    [line] = axes.plot(curve.x, curve.y, marker="o", markersize=4, label=curve.name)
    if curve.low is None or curve.high is None:
        return
    if len(curve.x) > 1:
        axes.fill_between(curve.x, curve.low, curve.high, alpha=0.15, color=line.get_color(), linewidth=0)
    else:
        axes.vlines(curve.x, curve.low, curve.high, color=line.get_color(), linewidth=1)


def _set_x_ticks(axes: Any, figure: Figure) -> None:
    """Set ticks that do not overlap, with plain numbers."""
    from matplotlib import ticker  # noqa: PLC0415 - an optional dependency

    values = [x for curve in figure.curves for x in curve.x]
    ratio = max(values) / min(values) if values and min(values) > 0 else 1
    if figure.log_x and ratio >= _RATIO:
        axes.set_xscale("log")
        subs = (1, 2, 5) if ratio < 10**_DECADES else (1,)
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=subs))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(_TICKS, integer=figure.whole_x, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: shown_tick(value)))


def shown_tick(value: float) -> str:
    """A short number for a tick.

    >>> [shown_tick(value) for value in (0.2, 15, 20_000, 3_000_000)]
    ['0.2', '15', '20k', '3M']
    """
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= unit:
            return f"{value / (1e3 if name == 'k' else unit):g}{name}"
    return f"{value:g}"
