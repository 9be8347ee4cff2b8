from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from easy_rows import write_data

from labelwood.cli import main


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    def complaint(self, code: int) -> str:
        """The one line of an error: nothing on stdout, one line on stderr, the right exit code."""
        assert (self.code, self.out) == (code, ""), self
        assert self.err.count("\n") == 1, self.err
        assert self.err.endswith("\n")
        return self.err.rstrip("\n")


@pytest.fixture
def labelwood(capsys):
    """Runs a command in this process."""

    def run(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def process():
    """Starts the command as users do, in a process of its own; one that still runs after the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object, **options: Any) -> subprocess.Popen[str]:
        # A shell's background job hands down that Ctrl-C is to be ignored; a user's shell does not.
        listen = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
        program = f"{listen}; from labelwood.cli import main; sys.exit(main())"
        command = [sys.executable, "-W", "error", "-c", program, *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        started.append(subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes))
        return started[-1]

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
            child.communicate()


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "train.txt")


@pytest.fixture
def test_data(tmp_path):
    return write_data(tmp_path / "test.txt", n_rows=40, seed=1)


@pytest.fixture
def model(labelwood, data, tmp_path):
    """A model of the default method."""
    path = tmp_path / "model"
    assert labelwood("train", data, "-o", path, "--random-state", 0).code == 0
    return path
