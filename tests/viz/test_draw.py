"""Pictures: ticks that do not overlap, intervals around measured points, no line that was not measured."""

from itertools import pairwise

import numpy as np
import pytest

from labelwood import CraftForest, LinearTree
from labelwood.data.synth import Shape, synth
from labelwood.viz.curves import FIGURES, Curve, Figure, Measured
from labelwood.viz.draw import drawn

pytest.importorskip("matplotlib")


def shown_ticks(canvas):
    """The numbers at the x axis and the boxes of their texts, from left to right."""
    canvas.draw_without_rendering()
    axes = canvas.axes[0]
    low, high = axes.get_xlim()
    minor = [(axes.xaxis.get_minorticklocs()[n], t) for n, t in enumerate(axes.xaxis.get_minorticklabels())]
    major = [(axes.xaxis.get_majorticklocs()[n], t) for n, t in enumerate(axes.xaxis.get_majorticklabels())]
    inside = [(x, text) for x, text in (*major, *minor) if low <= x <= high and text.get_text()]
    boxes = sorted((text.get_window_extent() for _, text in inside), key=lambda box: box.x0)
    return [x for x, _ in sorted(inside, key=lambda pair: pair[0])], boxes


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3],
        [1, 2, 3, 5, 7, 10],
        [0.18, 0.54, 1.3],
        [0.401, 0.43],
        [5.0],
        [1, 300],
        [2, 4e6],
        [1.1e9, 9.7e9],
        [0.0, 14],
    ],
)
@pytest.mark.parametrize("log_x", [True, False])
def test_ticks_do_not_overlap(x, log_x):
    figure = Figure("x", "y", (Curve("m", list(map(float, x)), [1.0] * len(x)),), log_x=log_x)
    places, boxes = shown_ticks(drawn(figure, title="t"))
    assert len(places) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_whole_numbers_have_ticks_at_whole_numbers():
    figure = Figure("trees", "y", (Curve("m", [1.0, 2.0, 3.0], [1.0] * 3),), log_x=True, whole_x=True)
    places, _ = shown_ticks(drawn(figure, title="t"))
    assert all(place == round(place) for place in places)


@pytest.fixture(scope="module")
def made():
    dataset = synth(Shape(400, 30, 200), seed=0)
    models = {
        "linear": LinearTree(n_trees=3, n_jobs=1, random_state=0).fit(dataset.X, dataset.Y),
        "craft": CraftForest(n_trees=4, n_jobs=1, random_state=0).fit(dataset.X, dataset.Y),
    }
    return models, {name: Measured(dataset.X, dataset.Y) for name in models}


@pytest.mark.parametrize("name", ["trees", "nodes", "size", "recall", "reliability"])
def test_measured_points_have_intervals(made, name):
    figure = FIGURES[name][2](*made, 5)
    for curve in figure.curves:
        if curve.kind == "reference":
            continue
        assert all(np.isfinite(curve.y))
        assert all(low <= y <= high for low, y, high in zip(curve.low, curve.y, curve.high, strict=True))
        assert any(low < high for low, high in zip(curve.low, curve.high, strict=True))
    axes = drawn(figure, title="t").axes[0]
    n_measured = sum(curve.kind == "line" for curve in figure.curves)
    assert len(axes.collections) == n_measured, "a band or a bar of the interval per curve"


def test_a_reference_is_told_from_what_was_measured(made):
    figure = FIGURES["reliability"][2](*made, 5)
    lines = drawn(figure, title="t").axes[0].get_lines()
    assert lines[0].get_linestyle() == "--"
    assert lines[0].get_marker() in ("None", None, "")
    assert all(line.get_marker() == "o" for line in lines[1:])


def test_depths_without_labels_are_not_drawn(made):
    figure = FIGURES["depth"][2](made[0])
    assert all(count > 0 for curve in figure.curves for count in curve.y)
    axes = drawn(figure, title="t").axes[0]
    assert not axes.get_lines()
    assert len(axes.patches) == sum(len(curve.x) for curve in figure.curves)
