"""Memory traffic of LinearTree's solver, compared with the bandwidth of this machine.

    python benchmarks/kernels/solver.py [FOLDER] [--repeats 3]

FOLDER holds train.txt[.xz] (eurlex57k by default, from LABELWOOD_DATA or ../shared/data). The tree is trained
on one thread with each instruction set that this machine has, in turns; the best of the repeats counts. The
solver reports the bytes of weights that it moved. The bandwidth is measured by bandwidth.cpp, compiled for
this machine, on a table as large as the weights of the median node (its features x 16 siblings).
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from labelwood import LinearTree, _core
from labelwood.data import load

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("LABELWOOD_DATA", HERE.parents[2] / "shared" / "data"))


class Listener(logging.Handler):
    """Keep the gigabytes of weights that ``fit`` logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if "GB of weights" in record.msg:
            self.heard["gigabytes"] = float(record.args[0])


def measure(folder: Path) -> str:
    """Train once and return the figures as words. The instruction set is chosen once per process."""
    file = next(path for path in (folder / "train.txt", folder / "train.txt.xz") if path.exists())
    data = load(file)
    listener = Listener()
    logger = logging.getLogger("labelwood")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(listener)
    model = LinearTree(n_jobs=1).fit(data.X, data.Y)
    used = np.diff(model.trees_[0].node_weights.feature_ptr)
    return f"{_core.isa()} {model.fit_seconds_['train']} {listener.heard['gigabytes']} {np.median(used)}"


def bandwidth(table_bytes: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bandwidth"
        source = HERE / "bandwidth.cpp"
        subprocess.run(["g++", "-O3", "-march=native", "-std=c++20", source, "-o", program], check=True)
        command = [program, str(table_bytes), "0.5"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    reads, updates, _ = printed.split()
    return float(reads), float(updates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA / "eurlex57k")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(measure(options.folder))
        return
    best: dict[str, tuple[float, float, float]] = {}
    for _ in range(options.repeats):
        for isa in ("baseline", "avx2", "avx512"):
            done = subprocess.run(
                [sys.executable, __file__, str(options.folder), "--one"],
                env={**os.environ, "LABELWOOD_ISA": isa}, capture_output=True, text=True, check=True,
            )  # fmt: skip
            used, *figures = done.stdout.split()
            seconds, gigabytes, features = map(float, figures)
            if used == isa and (isa not in best or seconds < best[isa][0]):
                best[isa] = seconds, gigabytes, features
    print("| instruction set | train s | weights moved, GB | GB/s |\n|---|---:|---:|---:|")
    for isa, (seconds, gigabytes, _) in best.items():
        print(f"| {isa} | {seconds:.2f} | {gigabytes:.0f} | {gigabytes / seconds:.0f} |")
    features = next(iter(best.values()))[2]
    table_bytes = int(features) * 64
    reads, updates = bandwidth(table_bytes)
    print(
        f"bandwidth of random 64-byte rows in a table of {table_bytes / 1e6:.1f} MB (the median node has "
        f"{features:.0f} features): {reads:.0f} GB/s reading, {updates:.0f} GB/s reading and writing"
    )


if __name__ == "__main__":
    main()
