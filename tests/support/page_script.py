"""Run a Markdown page as a script: write its files, run its commands and Python blocks in order, compare the output.

- A block with ``title="NAME"`` is the content of a file.
- ``sh`` is pasted into a shell, ``python`` into a new interpreter.
- ``text`` after one of these is what it prints; ``...`` stands for anything. If the commands fail, it is the error.
- A service runs until the end of the page. Its port is replaced by a free one.
- Lines of ``pip install`` are left out: the tests run where Labelwood is installed, and without a network.
- Any other block, such as ``usage`` or ``json``, is only read.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PORT = "8765"  # the default of labelwood serve
OPTIONAL = ("dot",)  # programs that a page mentions and a machine may lack
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: language, title if it is a file, content, line number, and the output promised after it."""

    language: str
    title: str | None
    code: str
    line: int
    promised: str | None = None

    @property
    def runs(self) -> bool:
        """True if the block is commands or Python, and no file."""
        return self.title is None and self.language in ("sh", "python")


def page_blocks(text: str) -> list[Block]:
    """The blocks of a page in order; a promised output belongs to the block before it."""
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, _, rest = match[1].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        line = text.count("\n", 0, match.start()) + 1
        if language == "text" and title is None:
            before = found.pop()
            assert before.language in ("sh", "python"), f"line {line}: an output without a command"
            assert before.promised is None, f"line {line}: a second output of one block"
            found.append(Block(before.language, None, before.code, before.line, match[2]))
        else:
            found.append(Block(language, title[1] if title else None, match[2], line))
    return found


@dataclass
class PageScript:
    """A folder in which the blocks of a page run one after the other."""

    folder: Path
    port: int = 0
    services: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, block: Block) -> str:
        """Write a file, or run commands or Python, compare what they print with what is promised, and return it."""
        if block.title is not None:
            (self.folder / block.title).write_text(block.code)
        elif block.language == "sh":
            return self._run_commands(block)
        elif block.language == "python":
            return self._compare(block, self._process([sys.executable, "-c", block.code]))
        return ""

    def _run_commands(self, block: Block) -> str:
        lines, rest = [], []
        for line in block.code.replace("\\\n", " ").splitlines():
            program = line.split(maxsplit=1)[0] if line.strip() else ""
            if line.startswith("pip install") or (program in OPTIONAL and shutil.which(program) is None):
                continue
            is_service = line.startswith(("labelwood serve", "labelwood review")) and "--export" not in line
            (rest if is_service else lines).append(line)
        script = "\n".join(lines).replace(PORT, str(self.port))
        printed = self._compare(block, self._process(["bash", "-e", "-c", script]))
        for line in rest:
            self._serve(line)
        return printed

    def _process(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=_environment(), check=False, capture_output=True, text=True, timeout=300
        )

    def _compare(self, block: Block, done: subprocess.CompletedProcess[str]) -> str:
        where = f"line {block.line}:\n{block.code}"
        assert "Traceback" not in done.stderr, f"{where}\n{done.stderr}"
        assert done.returncode == 0 or block.promised is not None, f"{where}\n{done.stderr}"
        printed = done.stderr if done.returncode else done.stdout
        if block.promised is not None:
            assert matches(block.promised, printed), f"{where}\nprints\n{printed}\n{done.stderr}"
        return printed

    def _serve(self, line: str) -> None:
        self.port = _free_port()
        command = [*line.split(), "--port", str(self.port)]
        self.services.append(
            subprocess.Popen(
                command, cwd=self.folder, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        )
        for _ in range(600):
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5),
            ):
                return
            assert self.services[-1].poll() is None, f"{line}: the service ended"
            time.sleep(0.1)
        raise AssertionError(f"{line}: the service does not answer")


@contextlib.contextmanager
def page_script(folder: Path) -> Iterator[PageScript]:
    """A script that runs in ``folder``; its services end with it."""
    script = PageScript(folder)
    try:
        yield script
    finally:
        for service in script.services:
            service.terminate()
            service.communicate(timeout=60)


def matches(promised: str, printed: str) -> bool:
    """True if the output is as promised: ``...`` stands for anything, also for lines; blanks may be wider."""

    def plain(text: str) -> str:
        return re.sub(r"[ \t]+", " ", "\n".join(line.rstrip() for line in text.strip().splitlines()))

    pattern = ".*?".join(re.escape(part) for part in plain(promised).split("..."))
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
