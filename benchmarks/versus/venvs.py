"""Virtual environments of the peers: one each, with pinned packages, built when first needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class PeerUnavailableError(Exception):
    """A peer's environment could not be built; the message is the reason."""


def python_of(peer: str, requirements: Sequence[str], root: Path) -> str:
    """The Python interpreter of a peer's environment; build it unless it exists with the same requirements.

    A peer without requirements runs in the environment of this script.
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
                f"{' '.join(requirements)} could not be installed: {(errors or lines)[-1].strip()}"
            )
    stamp.write_text(wanted)
    return str(python)
