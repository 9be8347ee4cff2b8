"""Count the files that four walks through the code open, and their turns back: ``make walks``.

A walk runs one task and notes every call between two functions of the project, in Python and in C++. A file is opened
if one of its functions is called. Not counted are code that runs on import, members that a dataclass or the compiler
generates, and ``base/span.hpp``, whose containers stand for those of the standard library. A turn back is a pair (A, B)
of files: A calls a function of B while another function of B waits further up the stack, so that the reader must go
back to B. A function inside another one is read where it is written, so its own call is no turn.

``--files`` prints the files in the order they are opened, with the functions that are called, and the turns back.
``--walk NAME`` runs one walk. The package is the one that Python imports; its compiled module must be built with
``-finstrument-functions``, and ``walks_recorder.c`` preloaded, as ``make walks`` does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import io
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import labelwood
from labelwood import _core
from labelwood.cli import main

PACKAGE = Path(labelwood.__file__).parent
CONTAINERS = "base/span.hpp"
N_TOPICS = 500  # more than fit below one node, so that labels are clustered


class Function(NamedTuple):
    """A function of the project."""

    file: str
    name: str
    is_inner: bool  # written inside another function


Stack = tuple[Function, ...]


class Walk:
    """The stacks of functions that occur while it records, in their order."""

    def __init__(self, recorder: ctypes.CDLL) -> None:
        self.stacks: dict[Stack, None] = {}
        self._recorder = recorder
        self._is_on = False

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls of this thread, of threads started since :meth:`watch_threads`, and of the core."""
        self._recorder.walk_start()
        self._is_on = True
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._is_on = False
            self._recorder.walk_stop()
        self.stacks |= dict.fromkeys(core_stacks(self._recorder))

    def watch_threads(self) -> None:
        """Let threads that start from here on be recorded too."""
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._is_on or event != "call" or not _is_ours(frame.f_code):
            return
        stack = []
        above: FrameType | None = frame
        while above is not None:
            if _is_ours(above.f_code):
                if above.f_code.co_name == "<module>":
                    return  # what runs on import is no part of the walk
                stack.append(python_function(above.f_code))
            above = above.f_back
        self.stacks.setdefault(tuple(stack[::-1]))

    def steps(self) -> Iterator[Stack]:
        """The stacks as a reader sees them: an inner function stands in the function that it is written in."""
        for stack in self.stacks:
            read: list[Function] = []
            for function in stack:
                if function.is_inner and any(function.file == above.file for above in read):
                    while read[-1].file != function.file:
                        read.pop()
                read.append(function)
            yield tuple(read)


def turn_back(stack: Stack) -> tuple[str, str] | None:
    """The files (A, B) if the last call of a stack goes from A back to B, which waits further up."""
    *above, caller, file = (None, None, *(function.file for function in stack))
    return (caller, file) if caller and file and caller != file and file in above else None


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(f"{PACKAGE}/")


def python_function(code: CodeType) -> Function:
    """The function of the package that has this code."""
    file = str(Path(code.co_filename).relative_to(PACKAGE))
    return Function(file, code.co_qualname, "<locals>" in code.co_qualname)


def core_stacks(recorder: ctypes.CDLL) -> Iterator[Stack]:
    """The stacks of functions of the compiled module."""
    with tempfile.NamedTemporaryFile("r") as file:
        if recorder.walk_write(file.name.encode()):
            raise SystemExit("walks: the calls of the core cannot be written")
        calls = [line.split() for line in file]
    functions = core_functions({address for _, _, address in calls})
    stacks: dict[str, Stack] = {"0": ()}
    for number, caller, address in calls:
        function = functions[address]
        stacks[number] = stacks[caller] + ((function,) if function else ())
        if function:
            yield stacks[number]


def core_functions(addresses: set[str]) -> dict[str, Function | None]:
    """The functions of the core by their addresses in the module; None for others."""
    ordered = sorted(addresses)
    command = ["addr2line", "--functions", "--demangle", "--exe", _core.__file__]
    output = subprocess.run(command, input="\n".join(ordered), capture_output=True, text=True, check=True).stdout
    lines = output.splitlines()
    return {
        address: _core_function(name, place)
        for address, name, place in zip(ordered, lines[::2], lines[1::2], strict=True)
    }


def _core_function(name: str, place: str) -> Function | None:
    path, _, number = place.partition(" ")[0].rpartition(":")
    _, is_core, file = path.rpartition("src/core/")
    if not is_core or file == CONTAINERS:
        return None
    line = _source(path)[int(number) - 1]
    if re.search(r"\b(struct|class)\b", line):  # where the compiler places the members that it generates
        return None
    short = re.sub(r"[(<].*", "", name.replace("(anonymous namespace)::", "")).rpartition("::")[2]
    is_lambda = re.search(r"(?<!operator)\[[^\]]*\] ?[({]", line) is not None
    return Function(f"core/{file}", short, is_lambda)


@cache
def _source(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def texts_file(folder: Path) -> Path:
    """A table of texts and labels."""
    rows = [f"a note on topic{n % N_TOPICS} and matter{n % 30},topic{n % N_TOPICS};matter{n % 30}" for n in range(1000)]
    path = folder / "docs.csv"
    path.write_text("\n".join(["text,labels", *rows, ""]), encoding="utf-8")
    return path


def run_command(*words: object) -> None:
    """Run a command of ``labelwood`` in one thread, so that every call has its caller on the stack, without output."""
    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*map(str, words), "--n-jobs", "1", "-q"])
    if code:
        raise SystemExit(f"labelwood {words[0]} failed")


def train(walk: Walk, folder: Path) -> None:
    """A row of a CSV file, from ``labelwood train`` to the packed tree on disk."""
    path = texts_file(folder)
    with walk.recording():
        run_command("train", path, "-o", folder / "model")


def predict(walk: Walk, folder: Path) -> None:
    """A text, from ``labelwood predict`` to the names of its best labels."""
    run_command("train", texts_file(folder), "-o", folder / "model")
    with walk.recording():
        run_command("predict", folder / "model", "a note on topic7", "-k", 2)


def learn(walk: Walk, folder: Path) -> None:
    """An example POSTed to /learn, until it is durable and visible."""
    import httpx  # noqa: PLC0415 - the other walks do without the service

    from labelwood.serve.http.app import create_app  # noqa: PLC0415
    from labelwood.serve.http.auth import Tokens  # noqa: PLC0415
    from labelwood.serve.http.limits import Limits  # noqa: PLC0415
    from labelwood.serve.service import Service  # noqa: PLC0415
    from labelwood.serve.state.store import Store  # noqa: PLC0415
    from labelwood.serve.state.writer import Writer  # noqa: PLC0415
    from labelwood.serve.telemetry import Metrics  # noqa: PLC0415

    method = ("--method", "online-tree", "--encoder", "hashing", "--n-features", 4096)
    run_command("train", texts_file(folder), "-o", folder / "model", *method)
    walk.watch_threads()
    store = Store(folder / "state", model=folder / "model")
    writer = Writer(store, n_jobs=1)
    service = Service(store.machine, Metrics(), writer)
    app = create_app(service, tokens=Tokens.find(None), limits=Limits())

    async def post() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            example = {"text": "a zebra has stripes", "labels": ["zoo"]}
            answer = await client.post("/learn", json={"examples": [example]})
            if answer.status_code >= 300:
                raise SystemExit(f"learn failed: {answer.text}")

    with walk.recording():
        asyncio.run(post())
    writer.close()


def craft(walk: Walk, folder: Path) -> None:
    """CraftForest, from the estimator's fit to C++."""
    rows = np.eye(12, dtype=np.float32).repeat(5, axis=0)
    model = labelwood.CraftForest(n_trees=3, n_jobs=1)
    with walk.recording():
        model.fit(rows, rows > 0)


WALKS = {"train": train, "predict": predict, "learn": learn, "craft": craft}


def run() -> None:
    """Run the walks, each in a process of its own, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--walk", choices=WALKS, help="one walk (default: all)")
    parser.add_argument("--files", action="store_true", help="print the files and the turns back")
    options = parser.parse_args()
    if options.walk is None:
        print(f"{'walk':<8} {'python':>7} {'c++':>5} {'files':>6} {'turns back':>11}", flush=True)
        for name in WALKS:
            subprocess.run([sys.executable, *sys.argv, "--walk", name], check=True)
        return
    walk = Walk(ctypes.CDLL(None))
    with tempfile.TemporaryDirectory() as folder:
        WALKS[options.walk](walk, Path(folder))
    files: dict[str, dict[str, None]] = {}
    turns = {}
    for stack in walk.steps():
        files.setdefault(stack[-1].file, {})[stack[-1].name] = None
        if turn := turn_back(stack):
            turns.setdefault(turn, stack)
    n_core = sum(file.startswith("core/") for file in files)
    print(f"{options.walk:<8} {len(files) - n_core:>7} {n_core:>5} {len(files):>6} {len(turns):>11}")
    if options.files:
        print("\n".join(f"  {file}: {', '.join(names)}" for file, names in files.items()))
        for (one, other), stack in turns.items():
            print(f"  {one} -> {other}: {stack[-2].name}, {stack[-1].name}")


if __name__ == "__main__":
    run()
