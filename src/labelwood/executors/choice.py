"""From what a user calls an executor to one."""

from __future__ import annotations

from labelwood.errors import LabelwoodError
from labelwood.executors.joblib import JoblibExecutor
from labelwood.executors.ray import RayExecutor
from labelwood.executors.units import THREADS, Executor

_LOCAL = ("ThreadingBackend", "SequentialBackend")


def chosen(executor: str | Executor | None, *, owner: str) -> Executor | None:
    """The executor that a name, an address such as ``ray://head:10001``, or an executor stands for."""
    if executor is None or (not isinstance(executor, str) and hasattr(executor, "map")):
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


def active() -> Executor | None:
    """The workers of the backend that ``joblib.parallel_config`` has set, if any: threads are ours already."""
    from joblib.parallel import get_active_backend  # noqa: PLC0415 - only training asks

    backend, _ = get_active_backend(prefer="threads")
    return None if type(backend).__name__ in _LOCAL else JoblibExecutor()
