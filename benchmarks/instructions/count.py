"""Instructions of training, batch, single, load, encode and learn, by callgrind; compared with a budget or a revision.

    python benchmarks/instructions/count.py                    (compare with budget.json; exit code 1 above 3 %)
    python benchmarks/instructions/count.py --record           (write budget.json)
    python benchmarks/instructions/count.py --base SITE        (compare with the package installed in the folder SITE)

Counts do not depend on the load of the machine. They depend on the compiler, on Python and on NumPy, so the budget
holds for the environment that it names; elsewhere, compare two revisions: make bench-compare BASE=rev.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
BUDGET = HERE / "budget.json"
MOST = 1.03


def environment() -> dict[str, str]:
    """What the counts depend on besides the code."""
    return {"machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}


def count(site: str | None = None) -> dict[str, int]:
    """Instructions by task, of the installed package or of the one in the folder ``site``."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "counting.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "counting.c"], check=True)
        out = Path(folder) / "counted"
        fixed = {"PYTHONHASHSEED": "0", "LABELWOOD_ISA": "avx2", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        own = {"PYTHONPATH": site} if site is not None else {}
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        words = [*command, sys.executable, str(HERE / "work.py"), str(library)]
        done = subprocess.run(words, env={**os.environ, **fixed, **own}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        return parse(path.read_text() for path in sorted(Path(folder).glob("counted*")))


def parse(dumps: Iterable[str]) -> dict[str, int]:
    """Task to instructions, from callgrind's files."""
    counts = {}
    for text in dumps:
        name = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if name and total:
            counts[name[1]] = int(total[1])
    return counts


def judge(counts: dict[str, int], base: dict[str, int]) -> list[str]:
    """The tasks that need more than 3 % more instructions than they may, and those that are missing."""
    return [name for name, most in base.items() if counts.get(name, sys.maxsize) > MOST * most]


def main() -> int:
    """Count, compare, print; return 1 if a task needs too many instructions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--base")
    options = parser.parse_args()
    counts = count()
    if options.record:
        BUDGET.write_text(json.dumps({"environment": environment(), "instructions": counts}, indent=1) + "\n")
        print(json.dumps(counts))
        return 0
    if options.base is not None:
        base = count(options.base)
    else:
        budget = json.loads(BUDGET.read_text())
        if budget["environment"] != environment():
            print(f"the budget is of {budget['environment']}, this is {environment()}; use make bench-compare BASE=rev")
            return 0
        base = budget["instructions"]
    for name, most in base.items():
        print(f"{name:<8} {counts[name]:>15,} {most:>15,} {counts[name] / most:7.3f}")
    slower = judge(counts, base)
    if slower:
        print(f"more than {MOST - 1:.0%} more instructions: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
