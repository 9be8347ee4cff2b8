"""The code blocks of Markdown pages, and Python run as a reader would: in a process and folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language; "" for those that name none."""
    fences = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [code for named, code in fences if named == language]


def run_python(code: str, folder: Path, **environment: str) -> str:
    """Run a block in ``folder``; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
