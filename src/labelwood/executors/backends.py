"""The executors besides threads: joblib's workers and Ray; and the executor that a user names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.executors.work_unit import MILLION, THREADS, Executor, Unit, perform
from labelwood.sparse import Arrays, Progress

_LOCAL = ("ThreadingBackend", "SequentialBackend")


def executor_of(executor: str | Executor, *, owner: str) -> Executor:
    """The executor that a user names: by word, by an address such as ``ray://head:10001``, or itself."""
    if not isinstance(executor, str) and hasattr(executor, "map"):
        return executor
    if executor == "threads":
        return THREADS
    if executor == "ray":
        return RayExecutor()
    if isinstance(executor, str) and executor.startswith("ray://"):
        return RayExecutor(executor)
    raise LabelwoodError(
        f"{owner}: executor must be 'threads', 'ray', 'ray://host:port' or an executor; got {executor!r}"
    )


def joblib_executor() -> Executor | None:
    """The executor for the backend that ``joblib.parallel_config`` has set; None if it works in this process."""
    from joblib.parallel import get_active_backend  # noqa: PLC0415 - only training asks

    backend, _ = get_active_backend(prefer="threads")
    return None if type(backend).__name__ in _LOCAL else JoblibExecutor()


class JoblibExecutor:
    """Runs units as ``joblib.parallel_config`` says, one thread each."""

    def map(
        self, units: Sequence[Unit], shared: Arrays, n_threads: int, progress: Progress
    ) -> Iterator[tuple[Unit, dict[str, npt.NDArray[Any]]]]:
        """Each unit with its result, in order."""
        from joblib import Parallel, delayed  # noqa: PLC0415 - only who uses it loads it

        results = Parallel()(delayed(perform)(unit, shared, 1, None) for unit in units)
        yield from zip(units, results, strict=True)


_RETRIES = -1  # a unit of a lost node runs again elsewhere, without limit: its result is the same
_PER_UNIT = 1  # threads; Ray keeps as many units running as its nodes have processors


class RayExecutor:
    """Runs units on a Ray cluster.

    ``address`` is what ``ray.init`` takes: ``ray://head:10001`` from outside the cluster, ``head:6379`` or ``auto``
    from within; None is the cluster of ``RAY_ADDRESS``, or a new one on this machine. An existing
    connection is used whatever its address. All nodes need the same version of Labelwood.
    """

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def connect(self) -> Any:
        """The module ``ray``, connected to the cluster."""
        try:
            ray = import_module("ray")
        except ImportError:
            raise LabelwoodError("RayExecutor: Ray is not installed; pip install 'labelwood[ray]' brings it") from None
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False)
        return ray

    def n_workers(self) -> int:
        """Units that the cluster runs at once."""
        return max(1, int(self.connect().cluster_resources().get("CPU", 1)) // _PER_UNIT)

    def map(
        self, units: Sequence[Unit], shared: Arrays, n_threads: int, progress: Progress
    ) -> Iterator[tuple[Unit, dict[str, npt.NDArray[Any]]]]:
        """Each unit with its result, as results arrive; the largest units start first."""
        ray = self.connect()
        held = ray.put(dict(shared))
        task = ray.remote(perform).options(num_cpus=_PER_UNIT, max_retries=_RETRIES)
        largest_first = sorted(units, key=lambda unit: -unit.cost)
        pending = {task.remote(unit, held, _PER_UNIT, None): unit for unit in largest_first}
        total, done = sum(unit.cost for unit in units), 0.0
        try:
            while pending:
                ready, _ = ray.wait(list(pending), num_returns=1)
                unit = pending.pop(ready[0])
                done += unit.cost
                yield unit, ray.get(ready[0])
                if progress is not None:
                    progress(round(MILLION * done / total))
        finally:
            for reference in pending:
                ray.cancel(reference)
