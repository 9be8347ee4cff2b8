"""Run the drivers: one measurement, or many measurements interleaved."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:  # the scripts of this folder import each other by name, modules elsewhere by package
    from aggregate import Record

DRIVERS = Path(__file__).resolve().parent / "drivers"
PHASES = ("train", "predict")
WATCH_SECONDS = 0.2
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Configuration:
    """One row of the table: a peer, its options, and the most threads it can use."""

    name: str
    peer: str
    options: dict[str, Any]
    max_threads: int = sys.maxsize

    @property
    def slug(self) -> str:
        """The name in a form that is safe as a folder name."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class Plan:
    """What to run, in the order A B C A B C ...; ``budget`` is seconds per configuration and thread count."""

    configurations: Sequence[Configuration]
    threads: Sequence[int]
    rounds: int
    budget: float
    run: str


def measure(
    configuration: Configuration, python: str, data: Path, threads: int, seconds: float, memory: int | None = None
) -> Record:
    """Run one training process and one prediction process; a failure gives a record with its reason.

    A process that takes more than ``seconds`` in all, or more than ``memory`` bytes, is ended.

    The thread count is passed to the driver and, in environment variables, to the common thread pools.
    taskset binds the process to as many cores, in case the peer starts more threads.
    """
    work = data / "work" / f"{configuration.slug}-{threads}"
    work.mkdir(parents=True, exist_ok=True)
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
    driver = str(DRIVERS / f"drive_{configuration.peer}.py")
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    record: dict[str, Any] = {}
    deadline = time.monotonic() + seconds
    for phase in PHASES:
        result, log = work / f"{phase}.json", work / f"{phase}.log"
        result.unlink(missing_ok=True)
        command = ["taskset", "--cpu-list", cores, python, driver, phase, "--data", str(data), "--work", str(work)]
        command += ["--threads", str(threads), "--options", json.dumps(configuration.options)]
        command += ["--result", str(result)]
        left = max(deadline - time.monotonic(), 1.0)
        with log.open("w") as output:
            code = watched(command, output, environment, left, memory)
        if code is None:
            return {"failure": f"{phase} did not finish within the {seconds:.0f} s left of the time budget"}
        if isinstance(code, OverMemory):
            return {"failure": f"{phase} took more than {memory / 1e9:.0f} GB after {code.seconds:.0f} s"}
        if code or not result.exists():
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            last = lines[-1][:200] if lines else "no output"
            return {"failure": f"{phase} ended with exit code {code}: {last}"}
        record |= json.loads(result.read_text())
    return record | {"predictions": str(work / "predictions.npz")}


@dataclass(frozen=True)
class OverMemory:
    """A process was ended because it took too much memory, this long after its start."""

    seconds: float


def watched(
    command: Sequence[str], output: IO[str], environment: Mapping[str, str], seconds: float, memory: int | None
) -> int | OverMemory | None:
    """Run a command; return its exit code, or end it and return None after ``seconds``, OverMemory above ``memory``."""
    started = time.monotonic()
    with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment) as process:
        try:
            while True:
                try:
                    return process.wait(timeout=WATCH_SECONDS)
                except subprocess.TimeoutExpired:
                    passed = time.monotonic() - started
                if memory is not None and peak_of(process.pid) > memory:
                    return OverMemory(passed)
                if passed > seconds:
                    return None
        finally:
            process.kill()


def peak_of(pid: int) -> int:
    """Peak memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def interleave(
    plan: Plan, pythons: Mapping[str, str], data: Path, score: Callable[[Path], dict[str, float]]
) -> list[Record]:
    """Run the plan and return its records; skip a configuration once it has failed or used up its budget."""
    records: list[Record] = []
    spent: dict[tuple[str, int], float] = {}
    stopped: set[tuple[str, int]] = set()
    turns = [(r, t, c) for r in range(plan.rounds) for t in plan.threads for c in plan.configurations]
    for round_, threads, configuration in turns:
        key = configuration.name, threads
        if key in stopped or threads > configuration.max_threads:
            continue
        used = spent.get(key, 0.0)
        left = plan.budget - used
        started = time.monotonic()
        # Do not start a round that would exceed the budget; it takes about as long as the earlier rounds.
        if round_ and left < used / round_:
            measured: Record = {"failure": f"another round would exceed the budget of {plan.budget:.0f} s"}
        else:
            measured = measure(configuration, pythons[configuration.peer], data, threads, left)
        spent[key] = used + time.monotonic() - started
        if "failure" in measured:
            stopped.add(key)
        else:
            measured = dict(measured) | {"scores": score(Path(measured["predictions"]))}
        records.append(
            dict(measured)
            | {"configuration": key[0], "threads": threads, "round": round_, "of": plan.rounds, "run": plan.run}
            | {"load_average": os.getloadavg()[0]}
        )
        print(f"round {round_ + 1}, {threads} threads, {key[0]}: {_told(records[-1])}", file=sys.stderr, flush=True)
    return records


def _told(record: Record) -> str:
    if "failure" in record:
        return f"failed: {record['failure']}"
    scores = " ".join(f"{name} {100 * record['scores'][name]:.2f}" for name in ("P@1", "P@3", "P@5"))
    return (
        f"train {record['train_seconds']:.2f} s, batch {record['batch_ms']:.4f} ms, "
        f"one {record['one_ms_p50']:.3f} ms, {record['model_bytes'] / 1e6:.1f} MB, {scores}"
    )
