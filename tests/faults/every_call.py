"""Inject every fault into every system call that changes a file, and check the files; run by test_files.py.

    LD_PRELOAD=inject.so python every_call.py FOLDER

Prints one JSON line per case: the calls, the faults, and how often the old and the new content was found.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labelwood import OnlineTree
from labelwood import load as load_model
from labelwood.data import Dataset, load, save
from labelwood.errors import LabelwoodError
from labelwood.executors.checkpoint import Checkpoint
from labelwood.run_context import logger
from labelwood.serve.state.log import LogWriter, read_log
from labelwood.serve.state.recovery import restore
from labelwood.serve.state.store import Store, view_of
from labelwood.sparse import CSR
from labelwood.storage.model_directory import read_model, write_model

MODES = {
    "kill -9": ("kill", 0), "torn write": ("torn", 0),
    "power cut": ("cut", 0), "power cut, half written": ("cut", 50), "power cut, zeros": ("cut", -1),
    "disk full": ("fail", errno.ENOSPC), "read-only": ("fail", errno.EROFS), "denied": ("fail", errno.EACCES),
    "input/output error": ("fail", errno.EIO), "error after success": ("after", errno.EIO), "short write": ("short", 7),
}  # fmt: skip
DEADLY = ("kill", "torn", "cut")
DONE, REFUSED = 0, 7


class Case(NamedTuple):
    """A write that replaces old content by new, and a function that tells which of the two is there.

    A case with many calls is tried at every ``stride``-th of them, unless LABELWOOD_EVERY_CALL is set.
    """

    prepare: Callable[[], None]
    write: Callable[[], None]
    found: Callable[[], str]  # "old" or "new"; raises for anything else
    stride: int = 1


def model_case(folder: Path, *, exists: bool) -> Case:
    """A model directory that is replaced, or written for the first time, in a folder that is new as well."""
    path = folder / "model" if exists else folder / "new" / "folder" / "model"

    def write(number: int) -> None:
        write_model(path, {"number": number}, {name: np.full(2000, number) for name in ("a", "b")})

    def found() -> str:
        if not exists and not path.exists():
            return "old"
        manifest, arrays = read_model(path, verify=True)
        assert all((array == manifest["number"]).all() for array in arrays.values())
        return ("old", "new")[manifest["number"]]

    return Case(lambda: write(0) if exists else None, lambda: write(1), found)


def data_case(folder: Path, name: str) -> Case:
    """A data file or a data set directory that is replaced, as ``convert`` does."""
    path = folder / name

    def dataset(number: int) -> Dataset:
        ones = np.ones(500, np.float32)
        ids, ptr = np.arange(500, dtype=np.int32), np.array([0, 500], np.int64)
        return Dataset(CSR(ptr, ids, ones + number, 500), CSR(ptr, ids, ones, 500))

    def found() -> str:
        number = int(load(path).X.data[0]) - 1
        assert np.array_equal(load(path).X.data, dataset(number).X.data)
        return ("old", "new")[number]

    return Case(lambda: save(path, dataset(0)), lambda: save(path, dataset(1)), found)


def log_case(folder: Path) -> Case:
    """A log that gets another frame; its file is full, so the frame goes to a new file."""

    def append(number: int) -> None:
        log = LogWriter(folder / "log", segment_bytes=100)
        log.append([{"number": number, "text": "x" * 3000}])
        log.close()

    def found() -> str:
        numbers = [record["number"] for frame in read_log(folder / "log") for record in frame.records]
        assert numbers in ([0], [0, 1]), numbers
        again = LogWriter(folder / "log")  # the log must accept further frames
        again.append([{"number": 2}])
        again.close()
        assert [r["number"] for frame in read_log(folder / "log") for r in frame.records] == [*numbers, 2]
        return ("old", "new")[len(numbers) - 1]

    return Case(lambda: append(0), lambda: append(1), found)


def checkpoint_case(folder: Path) -> Case:
    """A checkpoint that gets another unit."""
    path = folder / "new" / "checkpoint"

    def write(number: int) -> None:
        open_checkpoint(path).write(f"unit{number}", {"a": np.full(2000, number)})

    def found() -> str:
        units = open_checkpoint(path).read(["unit0", "unit1"])
        assert all((arrays["a"] == int(name[-1])).all() for name, arrays in units.items())
        assert "unit0" in units
        return ("old", "new")[len(units) - 1]

    return Case(lambda: write(0), lambda: write(1), found)


def open_checkpoint(path: Path) -> Checkpoint:
    return Checkpoint.open(path, resume=True, seed=0, fresh_seed=0, print_of="print", owner="test")


def state_case(folder: Path, source: Path) -> Case:
    """A state directory that is begun in a folder that is new as well, and gets a record."""
    path = folder / "new" / "state"

    def write() -> None:
        store = Store(path, model=source)
        store.log.append([{"kind": "learn", "examples": [{"features": {"2": 1.0}, "labels": ["b"]}]}])
        store.close()

    def found() -> str:
        store = Store(path, model=source)  # a service must start, whatever was left
        try:
            return ("old", "new")[store.machine.learned]
        finally:
            store.close()

    return Case(lambda: None, write, found, stride=12)


def snapshot_case(folder: Path, source: Path) -> Case:
    """A state directory that gets a snapshot, which removes older ones and their log. No record may be lost."""
    path = folder / "state"

    def learn(store: Store, number: int) -> None:
        record = {"kind": "learn", "examples": [{"features": {str(number): 1.0}, "labels": [str(number)]}]}
        store.machine.apply(store.log.append([record]))

    def prepare() -> None:
        store = Store(path, model=source, keep=1)
        for number in range(2):
            learn(store, number)
            store.log.rotate()
            store.write_snapshot(store.machine.snapshot())
        learn(store, 2)
        store.close()

    def write() -> None:
        store = Store(path, keep=1)
        store.log.rotate()
        store.write_snapshot(store.machine.snapshot())
        store.publish(store.machine.snapshot())
        store.close()

    def found() -> str:
        assert restore(path).learned == 3
        load_model(view_of(path), verify=True)
        return "new" if (path / "view").exists() else "old"

    return Case(prepare, write, found, stride=12)


def run(arm: ctypes.CDLL, folder: Path, case: Case, plan: tuple[int, str, int, bool]) -> tuple[int, int]:
    """Prepare, then write in a process with a planned fault; return its exit code and number of calls."""
    shutil.rmtree(folder)
    folder.mkdir()
    case.prepare()
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:
        number, action, value, stays = plan
        arm.fault_arm(os.fsencode(folder), number, action.encode(), value, stays)
        try:
            case.write()
            code = DONE
        except (OSError, LabelwoodError):
            code = REFUSED
        os.write(tells, str(arm.fault_calls()).encode())
        os._exit(code)
    os.close(tells)
    _, status = os.waitpid(child, 0)
    calls = os.read(told, 20)
    os.close(told)
    return os.waitstatus_to_exitcode(status), int(calls or -1)


def main(folder: Path) -> None:
    arm = ctypes.CDLL(None)
    logger.disabled = True  # a skipped snapshot is no news here
    source = folder.with_name("source")
    OnlineTree(n_jobs=1).partial_fit([{0: 1.0}, {1: 1.0}], [["0"], ["a"]]).save(source)
    cases = {
        "model, replaced": model_case(folder, exists=True),
        "model, new": model_case(folder, exists=False),
        "data as xmc": data_case(folder, "data.txt"),
        "data as npz": data_case(folder, "data.npz"),
        "data as xmc.gz": data_case(folder, "data.txt.gz"),
        "data as a directory": data_case(folder, "data.lw"),
        "log": log_case(folder),
        "checkpoint": checkpoint_case(folder),
        "state directory": state_case(folder, source),
        "snapshot": snapshot_case(folder, source),
    }
    for name, case in cases.items():
        code, calls = run(arm, folder, case, (10**6, "kill", 0, False))
        assert code == DONE
        assert calls > 3, calls
        assert case.found() == "new"
        outcomes = {"old": 0, "new": 0}
        stride = 1 if "LABELWOOD_EVERY_CALL" in os.environ else case.stride
        for turn, (mode, (action, value)) in enumerate(MODES.items()):
            for number in range(turn % stride, calls, stride):
                for stays in (False, True) if action not in DEADLY else (False,):
                    code, _ = run(arm, folder, case, (number, action, value, stays))
                    left = case.found()
                    outcomes[left] += 1
                    what = (name, mode, number, stays, code)
                    assert code in (DONE, REFUSED, -9), what
                    assert code != DONE or left == "new", (*what, "success without the new content")
        print(json.dumps({"what": name, "calls": calls, "faults": sum(outcomes.values()), **outcomes}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
