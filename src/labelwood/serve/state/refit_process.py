"""The process that trains the batch model of a refit.

    python -m labelwood.serve.state.refit_process DIR JOBS PARENT

It runs at the lowest priority, and ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

from labelwood.methods.online.living_batch import train_batch
from labelwood.serve.state.refits import JOB, MODEL, read_job, write_batch

_LOWEST = 19


def main(folder: Path, n_jobs: int, parent: int) -> None:
    """Train the job of a folder, and write the model beside it."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.nice(_LOWEST)
        if sys.platform == "linux":
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    write_batch(folder / MODEL, train_batch(read_job(folder / JOB), n_jobs=n_jobs))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
