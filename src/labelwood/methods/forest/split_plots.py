"""Pictures of a forest's splits, level by level."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.packed.routed_forest import RoutedForest

_QUANTILES = (0.1, 0.5, 0.9)


def by_level(forest: RoutedForest, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Quantiles by level of a value per inner node; one row per level with inner nodes."""
    inner = np.flatnonzero(np.diff(forest.child_ptr))
    level = np.searchsorted(forest.level_ptr, inner, "right") - 1
    parts = np.split(values, np.searchsorted(level, np.arange(1, forest.depth)))
    return np.array([np.quantile(part, _QUANTILES) for part in parts if len(part)]).reshape(-1, 3)


def plot_by_level(forest: RoutedForest, values: dict[str, npt.NDArray[Any]], path: str | os.PathLike[str]) -> None:
    """Draw the median and the 10th to 90th percentile of each value by level, and write the picture to ``path``."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as above
    except ImportError:
        raise LabelwoodError("plot: matplotlib is needed; pip install 'labelwood[plots]'") from None
    if forest.depth == 0:
        raise LabelwoodError("plot: the forest has no splits")
    figure = Figure(figsize=(4 * len(values), 3.5), layout="constrained")
    for axes, (name, column) in zip(figure.subplots(1, len(values), squeeze=False)[0], values.items(), strict=True):
        found = by_level(forest, column)
        levels = np.arange(len(found))
        axes.fill_between(levels, found[:, 0], found[:, 2], alpha=0.3)
        axes.plot(levels, found[:, 1], marker="o", markersize=4)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(title=name, xlabel="level of the node")
    figure.savefig(path)
