"""Run a fuzz target for some time or a number of inputs; print the counts and findings as JSON.

    python fuzz/run.py parsers --count 1000000 --seed 1 --out parsers.json
    python fuzz/run.py models --minutes 5
    python fuzz/run.py models --seed 1 --only 1234        (repeat one input and show its traceback)

An input is determined by the target, the seed and its number, so a finding can be repeated from these three.
A target is called with a random generator and returns whether the input was accepted; it raises
AssertionError for a wrong result. The target runs in a worker process. A death of the worker (by a signal or
a sanitizer), a hang and any exception are findings; the run continues after them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # the twins are in tests/reference

TARGETS = ("parsers", "models", "logs", "arguments", "bodies", "imports")
# Written by the worker: number of the current input, inputs accepted, inputs refused, and one of the states
# below.
_COUNTS = struct.Struct("<qqqq")
_STARTING, _AT_WORK, _DONE = 0, 1, 2
_SECONDS_PER_INPUT = 60
_PLAIN_MEMORY = 6 * 2**30
_MOST_FINDINGS = 20

Target = Callable[[Random], bool]


def main(argv: list[str] | None = None) -> int:
    """Run workers until the count or the time is reached; return 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2**62, help="number of inputs")
    parser.add_argument("--minutes", type=float, default=1e9, help="time limit")
    parser.add_argument("--only", type=int, help="run only the input of this number and show what happens")
    parser.add_argument("--out", type=Path, help="JSON file for the counts and findings")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        if options.worker:
            shared, start, seconds = options.worker
            return _work(options, Path(folder), Path(shared), int(start), float(seconds))
        if options.only is not None:
            accepted = _target(options.target, Path(folder))(_generator(options, options.only))
            print("accepted" if accepted else "refused")
            return 0
        report = _supervise(options, Path(folder))
    text = json.dumps(report, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    return 1 if report["findings"] else 0


def _generator(options: argparse.Namespace, number: int) -> Random:
    return Random(f"{options.target} {options.seed} {number}")


def _target(name: str, folder: Path) -> Target:
    os.chdir(folder)
    sys.path.insert(0, str(Path(__file__).parent))
    target: Target = importlib.import_module(name).make(folder)
    return target


def _supervise(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    begun = time.monotonic()
    end = begun + 60 * options.minutes
    shared = folder / "counts"
    start, accepted, refused = 0, 0, 0
    findings: list[dict[str, Any]] = []
    while start < options.count and time.monotonic() < end and len(findings) < _MOST_FINDINGS:
        shared.write_bytes(_COUNTS.pack(start, 0, 0, _STARTING))
        words = [options.target, "--seed", str(options.seed), "--count", str(options.count)]
        command = [sys.executable, __file__, *words, "--worker", str(shared), str(start), str(end - time.monotonic())]
        done = subprocess.run(command, check=False, capture_output=True)
        number, more_accepted, more_refused, state = _COUNTS.unpack(shared.read_bytes())
        accepted, refused = accepted + more_accepted, refused + more_refused
        findings += [json.loads(line) for line in done.stdout.splitlines()]
        start = number + 1
        if state == _STARTING:  # the target could not be made, so no input is to blame
            raise SystemExit(done.stderr.decode("utf-8", "replace"))
        if done.returncode or state != _DONE:
            tail = done.stderr.decode("utf-8", "replace")[-4000:]
            findings.append({"number": number, "died": done.returncode, "stderr": tail})
        elif start >= options.count:
            break
    seconds = round(time.monotonic() - begun, 1)
    sanitizer = next((name for name in ("asan", "tsan") if f"lib{name}" in os.environ.get("LD_PRELOAD", "")), "none")
    return {
        "target": options.target,
        "seed": options.seed,
        "sanitizer": sanitizer,
        "inputs": accepted + refused,
        "accepted": accepted,
        "refused": refused,
        "seconds": seconds,
        "inputs_per_second": round((accepted + refused) / max(seconds, 1e-9)),
        "findings": findings,
    }


def _work(options: argparse.Namespace, folder: Path, shared: Path, start: int, seconds: float) -> int:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the alarm ends a worker that hangs
    if "lib" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (_PLAIN_MEMORY, _PLAIN_MEMORY))
    target = _target(options.target, folder)
    seen: set[str] = set()
    answers, silent = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    with shared.open("r+b") as file, mmap.mmap(file.fileno(), 0) as counts:
        end, number, accepted, refused = time.monotonic() + seconds, start, 0, 0
        while number < options.count and time.monotonic() < end:
            _COUNTS.pack_into(counts, 0, number, accepted, refused, _AT_WORK)
            signal.alarm(_SECONDS_PER_INPUT)
            try:
                taken = target(_generator(options, number))
                accepted, refused = accepted + taken, refused + (not taken)
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                place = f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}"
                if place not in seen and len(seen) < _MOST_FINDINGS:
                    seen.add(place)
                    told = {
                        "number": number,
                        "error": repr(error)[:500],
                        "at": [f"{f.filename}:{f.lineno}" for f in frames],
                    }
                    os.write(answers, json.dumps(told).encode() + b"\n")
            number += 1
        signal.alarm(0)
        _COUNTS.pack_into(counts, 0, number - 1, accepted, refused, _DONE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
