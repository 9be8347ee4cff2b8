"""Count the files that four walks through the code open, and their turns back: ``python tools/walks.py``.

A walk runs one task and notes every call between two functions of the package. A file is opened if one of its
functions is called; code that runs on import does not count. A C++ file is opened if the walk calls a kernel of the
binding that includes it, directly or through other headers. A turn back is a pair (A, B) of files: A calls a function
of B while another function of B waits further up the stack, so that the reader must go back to B. ``--files`` prints
the files in the order they are opened and the turns back, ``--walk NAME`` runs one walk.

The package is the one that Python imports; ``--core`` is the folder of its C++ sources.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import labelwood
from labelwood import _core
from labelwood.cli import main

PACKAGE = Path(labelwood.__file__).parent
TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due", "the court decided", "guilty by law"]
LABELS = ["pets", "pets", "law", "law;money", "court;law", "law"]
_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


class Walk:
    """The files that are opened while it records, the turns back, and the kernels called."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.turns: set[tuple[str, str]] = set()
        self.kernels: dict[str, None] = {}
        self._is_on = False

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls of this thread, and of threads started since :meth:`watch_threads`."""
        self._is_on = True
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._is_on = False

    def watch_threads(self) -> None:
        """Let threads that start from here on be recorded too."""
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._is_on or event != "call" or (file := _file_of(frame)) is None:
            return
        callers = []
        above: FrameType | None = frame
        while above is not None:
            if (source := _file_of(above)) is not None:
                if above.f_code.co_name == "<module>":
                    return  # what runs on import is no part of the walk
                callers.append(source)
            above = above.f_back
        self.files.setdefault(file)
        if callers[1:2] != [file] and file in callers[2:]:
            self.turns.add((callers[1], file))


def _file_of(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    return str(Path(path).relative_to(PACKAGE)) if path.startswith(f"{PACKAGE}/") else None


def watch_kernels(walk: Walk) -> None:
    """Note which functions and classes of the compiled module are called."""

    def watched(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            walk.kernels.setdefault(name)
            return kernel(*arguments, **named)

        return call

    for name, kernel in vars(_core).copy().items():
        if callable(kernel) and not name.startswith("_"):
            setattr(_core, name, watched(name, kernel))


def core_files(kernels: list[str], core: Path) -> set[str]:
    """The C++ files behind kernels: the bindings that define them, and all that these include."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(core.rglob("*.[ch]pp"))}
    bindings = [path for path in sources if path.suffix == ".cpp" and "bind" in str(path.relative_to(core))]
    pending = [
        path
        for path in bindings
        if any(re.search(rf'm(?:odule)?(?:\.def\(|,)\s*"{name}"', sources[path]) for name in kernels)
    ]
    found: set[Path] = set()
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        for name in _INCLUDE.findall(sources[path]):
            pending += [near for near in (core / name, path.parent / name) if near in sources][:1]
    return {str(path.relative_to(core)) for path in found}


def texts_file(folder: Path) -> Path:
    """A table of texts and labels."""
    rows = [f'"{text}","{labels}"' for text, labels in zip(TEXTS, LABELS, strict=True)] * 5
    path = folder / "docs.csv"
    path.write_text("\n".join(["text,labels", *rows, ""]), encoding="utf-8")
    return path


def run_command(*words: object) -> None:
    """Run a command of ``labelwood`` without its output."""
    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*map(str, words), "-q"])
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
    walk.kernels.clear()
    with walk.recording():
        run_command("predict", folder / "model", "a dog of the court", "-k", 2)


def learn(walk: Walk, folder: Path) -> None:
    """An example POSTed to /learn, until it is durable and visible."""
    import httpx  # noqa: PLC0415 - the other walks do without the service

    from labelwood.serve.http.app import create_app  # noqa: PLC0415
    from labelwood.serve.http.auth import Tokens  # noqa: PLC0415
    from labelwood.serve.http.gate import Limits  # noqa: PLC0415
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
    walk.kernels.clear()

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
    """Run the walks, each in a process state of its own, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--walk", choices=WALKS, action="append", help="one walk (default: all)")
    parser.add_argument("--files", action="store_true", help="print the files and the turns back")
    parser.add_argument("--core", type=Path, default=Path(__file__).parent.parent / "src" / "core")
    options = parser.parse_args()
    walk = Walk()
    watch_kernels(walk)
    print(f"{'walk':<8} {'python':>7} {'c++':>5} {'files':>6} {'turns back':>11}")
    for name in options.walk or WALKS:
        walk.files.clear()
        walk.turns.clear()
        walk.kernels.clear()
        with tempfile.TemporaryDirectory() as folder:
            WALKS[name](walk, Path(folder))
        below = core_files(list(walk.kernels), options.core)
        print(f"{name:<8} {len(walk.files):>7} {len(below):>5} {len(walk.files) + len(below):>6} {len(walk.turns):>11}")
        if options.files:
            print("\n".join(f"  {file}" for file in [*walk.files, *sorted(below)]))
            print("\n".join(f"  {one} -> {other}" for one, other in sorted(walk.turns)))


if __name__ == "__main__":
    run()
