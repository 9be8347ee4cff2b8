"""Extract the code blocks of Markdown pages, and run Python code in its own process and folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks(text: str, language: str) -> list[str]:
    """The fenced code blocks of a language; "" selects blocks without a language."""
    fences = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [code for named, code in fences if named == language]


def run_python(code: str, folder: Path, **environment: str) -> str:
    """Run a code block in ``folder`` and return what it printed."""
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
