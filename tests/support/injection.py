"""The preload library of tests/faults/inject.c, and the rules that it reads."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_CHANGES = itertools.count(1)
SOURCE = Path(__file__).parents[1] / "faults" / "inject.c"


def build_injector(folder: Path) -> Path:
    """Compile the library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("fault injection needs Linux and a C compiler")
    library = folder / "inject.so"
    command = [compiler, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    return library


class Faults:
    """The rules of one process or several; they may change while the processes run."""

    def __init__(self, library: Path, path: Path) -> None:
        self.path = path
        self.environment = {"LD_PRELOAD": str(library), "LABELWOOD_FAULTS": str(path)}
        self.set()

    def set(self, *rules: str) -> None:
        """Replace all rules; each is a line as inject.c describes it."""
        now = next(_CHANGES)  # the library looks at the time of the file, which must differ
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(f"{rule}\n" for rule in rules))
        os.utime(fresh, ns=(now, now))
        fresh.replace(self.path)
