"""The bytes, peak memory and seconds of a training before it starts, and the refusal of one that does not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from labelwood.errors import LabelwoodError
from labelwood.resources.memory import Limit, resident, shown_bytes
from labelwood.resources.theory import Level


class Banded(NamedTuple):
    """An estimated number and the band in which the truth is expected."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Banded:
        """The number in another unit."""
        return Banded(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, other: Banded | float) -> Banded:
        """The sum with another estimate, or with a known number."""
        value, low, high = other if isinstance(other, Banded) else (other, other, other)
        return Banded(self.value + value, self.low + low, self.high + high)

    def spread(self, low: float, high: float) -> Banded:
        """The same value; the ends of the band are multiplied by these factors."""
        return Banded(self.value, self.low * low, self.high * high)


def peak_of(held: Banded, before: float) -> Banded:
    """The peak of a process that holds ``before`` when training starts, and ``held`` more during training.

    The band is widened: by 10 % above, for what the allocator rounds up, and by 10 MB on both sides, for the stacks
    of threads and for pages that are used again.
    """
    return held.spread(1.0, 1.1).plus(Banded(before, before - 1e7, before + 1e7))


class Choice(NamedTuple):
    """Another setting and what it would need."""

    setting: str
    model_bytes: float
    peak_bytes: float


@dataclass(frozen=True)
class Estimate:
    """Bytes, peak memory and time of a training that has not happened.

    ``model_bytes`` are those of the saved arrays; ``peak_bytes`` those of the whole process at the peak of its
    training, with what it holds when that begins (the data, Python); ``seconds`` those of ``fit`` on this machine
    while nothing else runs. Label trees also tell the size of one-vs-rest and the ratio, in our layout and by the
    paper's accounting (Eqs. 17-20), and a table by level. ``bound_bytes`` is a bound that a method's own paper proves.
    """

    method: str
    n_trees: int
    model_bytes: Banded
    peak_bytes: Banded
    seconds: Banded
    estimate_seconds: float = 0.0
    weights: int | None = None
    one_vs_rest_bytes: int | None = None
    ratio: float | None = None
    paper_tree_bytes: int | None = None
    paper_one_vs_rest_bytes: int | None = None
    paper_ratio: float | None = None
    bound_bytes: int | None = None
    levels: Sequence[Level] = ()
    choices: Sequence[Choice] = ()

    def facts(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        plain = {name: value for name, value in vars(self).items() if value is not None}
        bands = {name: plain[name]._asdict() for name in ("model_bytes", "peak_bytes", "seconds")}
        choices = [choice._asdict() for choice in self.choices]
        return {**plain, **bands, "levels": [vars(level) for level in self.levels], "choices": choices}

    def scaled(self, setting: str, size: float) -> Choice:
        """What another setting needs, whose model has ``size`` times the bytes of this one."""
        return Choice(setting, size * self.model_bytes.value, size * self.peak_bytes.high + (1 - size) * resident())

    def check(self, limit: Limit, *, owner: str) -> None:
        """Raise unless even the upper end of the peak fits; the error names settings that need less."""
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
    """How a number grows when rows are doubled: by a power of two between ``low`` and ``high``.

    Each doubling has ``slowing`` times the power of the one before: below 1 where new rows bring fewer new features.
    """

    low: float
    high: float
    slowing: float = 1.0


def extrapolate(found: Sequence[float], factor: float, growth: Growth) -> Banded:
    """The number for ``factor`` times as many rows as gave the last of ``found``; the one before has half of them.

    The band lets the power err by a tenth, and the value by a tenth besides.
    """
    half, whole = max(found[0], 1e-9), max(found[-1], 1e-9)
    power = min(max(math.log2(whole / half), growth.low), growth.high)
    doublings, slowing = math.log2(factor), growth.slowing
    steps = doublings if slowing == 1 else slowing * (1 - slowing**doublings) / (1 - slowing)
    value, error = whole * 2 ** (power * steps), 2 ** (0.1 * doublings)
    return Banded(value, 0.9 * value / error, 1.1 * value * error)


def fewer_trees(n_trees: int) -> list[int]:
    """Smaller ensembles to propose: half, a fifth, one."""
    return sorted({n_trees // 2, n_trees // 5, 1} - {0, n_trees}, reverse=True) if n_trees > 1 else []
