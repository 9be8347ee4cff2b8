"""Units of work, the protocol of executors, and the default executor: threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt

from labelwood.run_context import RunContext, logger
from labelwood.sparse import Arrays, Progress

Function = Callable[[Arrays, Mapping[str, Any], int, Progress], dict[str, npt.NDArray[Any]]]

MILLION = 1_000_000  # kernels report progress in millionths


@dataclass(frozen=True)
class Unit:
    """A piece of work: ``function(arrays, setting, n_threads, progress)``, which returns a dict of arrays.

    ``function`` is defined at the top of a module, so that any process finds it by name. Its result depends on arrays
    and setting alone. It gets the arrays that all units of a call share and those in ``own``. ``name`` is unique within
    a training; ``cost`` compares units of one call.
    """

    name: str
    function: Function
    own: Arrays = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 1.0


def perform(unit: Unit, shared: Arrays, n_threads: int, progress: Progress) -> dict[str, npt.NDArray[Any]]:
    """Do the work of one unit in this process."""
    return unit.function({**shared, **unit.own}, unit.setting, n_threads, progress)


class Executor(Protocol):
    """Runs units, in any process and in any order."""

    def map(
        self, units: Sequence[Unit], shared: Arrays, n_threads: int, progress: Progress
    ) -> Iterator[tuple[Unit, dict[str, npt.NDArray[Any]]]]:
        """Each unit with its result, as results arrive; ``progress`` is called with millionths of the work."""
        ...


class Threads:
    """Runs units one after the other in this process, each with all threads."""

    is_local = True  # units work on the very arrays that they are given

    def map(
        self, units: Sequence[Unit], shared: Arrays, n_threads: int, progress: Progress
    ) -> Iterator[tuple[Unit, dict[str, npt.NDArray[Any]]]]:
        """Each unit with its result, in order."""
        total, done = sum(unit.cost for unit in units), 0.0
        for unit in units:
            within = None if progress is None else _Share(progress, done / total, unit.cost / total)
            yield unit, perform(unit, shared, n_threads, within)
            done += unit.cost


THREADS = Threads()


@dataclass(frozen=True)
class _Share:
    """Turns the progress of one unit into the progress of all."""

    progress: Callable[[int], None]
    start: float
    share: float

    def __call__(self, millionths: int) -> None:
        self.progress(round(MILLION * self.start + millionths * self.share))


def complete(
    title: str, units: Sequence[Unit], shared: Arrays, run: RunContext, *, is_kept: bool = True
) -> list[dict[str, npt.NDArray[Any]]]:
    """The results of all units, in order: from the checkpoint if it has them, else by the run's executor.

    Results that are not kept are not written to the checkpoint.
    """
    executor, checkpoint = run.executor or THREADS, run.checkpoint if is_kept else None
    found = {} if checkpoint is None else checkpoint.read(unit.name for unit in units)
    left = [unit for unit in units if unit.name not in found]
    with run.phase(title, MILLION) as progress:
        for unit in left:
            logger.debug("unit %s: to do", unit.name)
        for unit, arrays in executor.map(left, shared, run.n_threads, progress) if left else ():
            if checkpoint is not None:
                checkpoint.write(unit.name, arrays)
            logger.debug("unit %s: done", unit.name)
            found[unit.name] = arrays
    return [found[unit.name] for unit in units]


def tree_ranges(n_trees: int, run: RunContext) -> list[range]:
    """The trees of a forest by unit: as many as keep the threads of one worker busy."""
    at_once = run.n_threads if run.is_local else 1
    return [range(first, min(n_trees, first + at_once)) for first in range(0, n_trees, at_once)]
