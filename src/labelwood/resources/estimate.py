"""What a training will need, told before it starts; and the refusal of one that does not fit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.resources.memory import Limit, give_back, resident, shown_bytes
from labelwood.resources.theory import Level
from labelwood.run_context import RunContext
from labelwood.sparse import CSR

Grade = Literal["exact", "quick"]
GRADES: tuple[Grade, ...] = ("exact", "quick")
# Of what training holds: what the allocator rounds up; stacks of threads, or pages that were there before it began.
_SAFETY, _SLACK = 1.1, 1e7
_SAMPLE_ROWS = 1000  # at least, to try a method on
_SAMPLE_SHARE = {"exact": 0.07, "quick": 0.03}  # of the work: one tree of many may take all rows


class Figure(NamedTuple):
    """An estimated number with the band in which the truth is expected."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Figure:
        """The figure in another unit."""
        return Figure(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, other: Figure | float) -> Figure:
        """The sum of two figures, or of a figure and what is known."""
        if isinstance(other, Figure):
            return Figure(self.value + other.value, self.low + other.low, self.high + other.high)
        return Figure(self.value + other, self.low + other, self.high + other)


def known(value: float) -> Figure:
    """A figure without doubt."""
    return Figure(value, value, value)


def safe(held: Figure) -> Figure:
    """What training holds, with room above, where no measured peak came, and below, for pages that are used again."""
    return Figure(held.value, held.low - _SLACK, _SAFETY * held.high + _SLACK)


class Choice(NamedTuple):
    """Another setting and what it would need."""

    setting: str
    model_bytes: float
    peak_bytes: float


@dataclass(frozen=True)
class Estimate:
    """Bytes, peak memory and time of a training that has not happened.

    ``model_bytes`` are those of the saved arrays; ``peak_bytes`` those of the whole process at the peak of its
    training, with what it holds when that begins (the data, Python); ``seconds`` those of ``fit`` on this machine.
    Label trees also tell the size of one-vs-rest and the ratio, in our layout and by the paper's accounting
    (Eqs. 17-20), and a table by level. ``bound_bytes`` is a bound that a method's own paper proves.
    """

    method: str
    grade: Grade
    n_trees: int
    model_bytes: Figure
    peak_bytes: Figure
    seconds: Figure
    estimate_seconds: float
    weights: int | None = None
    one_vs_rest_bytes: int | None = None
    ratio: float | None = None
    paper_tree_bytes: int | None = None
    paper_one_vs_rest_bytes: int | None = None
    paper_ratio: float | None = None
    bound_bytes: int | None = None
    levels: Sequence[Level] = ()
    choices: Sequence[Choice] = field(default=())

    def facts(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        plain = {name: value for name, value in vars(self).items() if value is not None}
        for name in ("model_bytes", "peak_bytes", "seconds"):
            plain[name] = plain[name]._asdict()
        plain["levels"] = [vars(level) for level in self.levels]
        plain["choices"] = [choice._asdict() for choice in self.choices]
        return plain

    def check(self, limit: Limit, *, owner: str) -> None:
        """Raise unless even the upper end of the peak fits, with what would fit instead."""
        if self.peak_bytes.high <= limit.bytes:
            return
        fitting = [choice for choice in self.choices if choice.peak_bytes <= limit.bytes]
        smaller = [choice for choice in self.choices if choice.peak_bytes < 0.98 * self.peak_bytes.high]
        shown = fitting or sorted(smaller, key=lambda choice: choice.peak_bytes)
        advice = "; ".join(
            f"{choice.setting} takes {shown_bytes(choice.peak_bytes)} (model {shown_bytes(choice.model_bytes)})"
            for choice in shown
        )
        opening = "what fits" if fitting else "no one change fits, but each would need less"
        raise LabelwoodError(
            f"{owner}: training needs up to {shown_bytes(self.peak_bytes.high)} of memory for a model of about "
            f"{shown_bytes(self.model_bytes.value)}, more than the {shown_bytes(limit.bytes)} that {limit.words}; "
            f"{shown_bytes(resident())} are held already"
            + (f"; {opening}: {advice}" if shown else "; fewer rows or features would need less")
        )


class Growth(NamedTuple):
    """How bytes or seconds grow when rows are doubled: by a power of two, held between ``low`` and ``high``.

    ``slows``: each doubling adds less than the one before, as where new rows bring fewer and fewer new features.
    """

    low: float
    high: float
    slows: bool = False


_SECONDS = Growth(0.95, 1.2)
_SLOWING = (0.5, 0.97)  # of the power, from one doubling to the next: half as much as last seen


def extrapolate(found: Sequence[float], factor: float, growth: Growth) -> Figure:
    """What ``factor`` times as many rows give as gave the last of ``found``; each has twice the rows of the one before.

    The band lets the power err by a tenth, and the value by a tenth besides.
    """
    doublings = math.log2(factor)
    powers = [math.log2(max(more, 1e-9) / max(less, 1e-9)) for less, more in pairwise(found)] or [growth.high]
    if growth.slows and len(powers) > 1:
        last = min(max(powers[-1], growth.low), growth.high)
        slowing = min(max((1 + powers[-1] / max(powers[-2], 1e-9)) / 2, _SLOWING[0]), _SLOWING[1])
        steps = last * slowing * (1 - slowing**doublings) / (1 - slowing)
    else:
        steps = min(max(sum(powers) / len(powers), growth.low), growth.high) * doublings
    value, error = found[-1] * 2**steps, 2 ** (0.1 * doublings)
    return Figure(value, 0.9 * value / error, 1.1 * value * error)


def by_sampling(
    try_rows: Callable[[CSR, CSR, RunContext], int],
    X: CSR,
    Y: CSR,
    *,
    method: str,
    grade: Grade,
    n_trees: int,
    names_bytes: int,
    held_in_training: float,
    growth: Growth,
    bound: int | None,
    run: RunContext,
) -> Estimate:
    """An estimate by training one tree on a part of the rows, its half and its quarter; or on all, where it is of many.

    ``try_rows`` trains one tree and returns the bytes of a model of ``n_trees`` like it; ``held_in_training`` are the
    bytes that training holds for each of them, ``growth`` how they grow with the rows; ``bound`` is one that the
    method's paper proves.
    """
    started, before = time.perf_counter(), resident()
    order = np.random.default_rng(run.seed).permutation(X.n_rows)
    most = min(X.n_rows, max(_SAMPLE_ROWS, round(_SAMPLE_SHARE[grade] * n_trees * X.n_rows)))
    sizes, seconds = [], []
    for count in (most,) if most == X.n_rows else (max(1, most // 4), max(1, most // 2), most):
        rows, clock = order[:count], time.perf_counter()
        sizes.append(float(try_rows(X.take(rows), Y.take(rows), RunContext(seed=run.seed))))
        seconds.append((time.perf_counter() - clock) / run.n_threads)
    give_back()
    before = max(before, resident())  # a training that follows starts with what the samples leave behind
    factor = X.n_rows / most
    stored = extrapolate(sizes, factor, growth)
    if bound is not None:
        stored = Figure(*(min(part, float(bound)) for part in stored))
    extra = stored.times(held_in_training).plus(1.5 * X.nbytes + Y.nbytes)
    held = safe(extra).plus(before)
    model = stored.plus(float(names_bytes))
    return Estimate(
        method=method,
        grade=grade,
        n_trees=n_trees,
        model_bytes=model,
        peak_bytes=held,
        seconds=extrapolate(seconds, factor, _SECONDS).times(n_trees),
        estimate_seconds=time.perf_counter() - started,
        bound_bytes=bound,
        choices=[
            Choice(f"n_trees={n}", model.value * n / n_trees, before + (held.high - before) * n / n_trees)
            for n in fewer_trees(n_trees)
        ],
    )


def fewer_trees(n_trees: int) -> list[int]:
    """Smaller ensembles worth a thought: half, a fifth, one."""
    return sorted({n_trees // 2, n_trees // 5, 1} - {0, n_trees}, reverse=True) if n_trees > 1 else []
