"""Units on the workers of joblib's active backend: processes of this machine, Dask, or what else joblib knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from labelwood.executors.units import Arrays, Progress, Unit, perform


class JoblibExecutor:
    """Runs units as ``joblib.parallel_config`` says, one thread each."""

    def map(
        self, units: Sequence[Unit], shared: Arrays, n_threads: int, progress: Progress
    ) -> Iterator[tuple[Unit, dict[str, npt.NDArray[Any]]]]:
        """Each unit with its result, in order."""
        from joblib import Parallel, delayed  # noqa: PLC0415 - only who uses it loads it

        results = Parallel()(delayed(perform)(unit, shared, 1, None) for unit in units)
        yield from zip(units, results, strict=True)
