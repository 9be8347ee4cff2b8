"""One virtual environment per peer, pinned, built from the package index the first time it is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class PeerUnavailableError(Exception):
    """A peer's environment could not be built; the message is the reason."""


def python_of(peer: str, requirements: Sequence[str], root: Path) -> str:
    """The interpreter of the peer's environment, built unless it is there from the same requirements.

    A peer without requirements runs in the environment of the harness.
    """
    if not requirements:
        return sys.executable
    home = root / peer
    python = home / "bin" / "python"
    stamp = home / "requirements.txt"
    wanted = "\n".join(requirements) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    print(f"building {home}: {' '.join(requirements)}", file=sys.stderr, flush=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    commands = ([sys.executable, "-m", "venv", "--clear", str(home)], [*pip, "install", *requirements])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
            errors = [line for line in lines if "error" in line.lower()]
            raise PeerUnavailableError(
                f"{' '.join(requirements)} did not install: {(errors or lines)[-1].strip()}"
            )
    stamp.write_text(wanted)
    return str(python)
