"""Fuzz the command line with random commands, flags, files and values.

Every command line must return an exit code, with a message and without a traceback if the code is not 0.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

from mutate import spoil_bytes

from labelwood import LinearTree, OnlineTree
from labelwood.cli import COMMANDS, main, parser_of

# demo trains for seconds, tune for minutes, and serve never ends: they only get arguments that stop them at
# once.
_NEVER_RUN = ("demo", "tune", "serve")
_ROWS = b"4 6 3\n0 0:1 1:1\n1 2:1 3:0.5\n2 4:1 5:1\n0,2 0:1 4:1\n"
_VALUES = (
    "", "0", "1", "2", "-1", "1e9", "nan", "inf", "0.5", "none", "true", "[1]", "{}", "x", "é", "\ud800", "9" * 20,
    "rows.txt", "rows.svm", "texts.csv", "model", "online", "absent", ".", "out.txt", "out", "xmc", "csv", "json",
    "1,2", "1:2", "10MB", "linear-tree", "online-tree", "craft-forest", "label", "\x00", "a\nb", "--", "-", "1kB",
)  # fmt: skip


def make(folder: Path) -> Callable[[Random], bool]:
    """Make the target. It runs in ``folder`` and restores its files from time to time."""
    flags = {name: _flags_of(name) for name in COMMANDS}

    def run(random: Random) -> bool:
        if random.randrange(50) == 0 or not (folder / "rows.txt").exists():
            _set_up(folder)
        name = random.choice(tuple(COMMANDS))
        words = [name] if random.randrange(50) else [random.choice(_VALUES)]
        words += [_word(random, flags[name]) for _ in range(random.randrange(7))]
        if name in _NEVER_RUN:
            words.append(random.choice(("--no-such-flag", "--help")))
        return _call(words)

    return run


def _word(random: Random, flags: list[str]) -> str:
    return random.choice(flags) if flags and random.randrange(2) else _value(random)


def _value(random: Random) -> str:
    value = random.choice(_VALUES)
    if random.randrange(10):
        return value
    return spoil_bytes(random, value.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _call(words: list[str]) -> bool:
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(_ROWS))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = main(words)
    finally:
        sys.stdin = stdin
    assert code in (0, 1, 2), (words, code)
    assert "Traceback" not in err.getvalue(), (words, err.getvalue())
    assert code == 0 or err.getvalue().strip(), (words, "failed without a message")
    return code == 0


def _flags_of(name: str) -> list[str]:
    parser = parser_of(name, [])
    return [flag for action in parser._actions for flag in action.option_strings]


def _set_up(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (folder / "rows.txt").write_bytes(_ROWS)
    (folder / "rows.svm").write_bytes(b"0 1:1\n1 2:1\n2 3:1\n")
    (folder / "texts.csv").write_bytes(b"text,labels\ncats and dogs,pets\ntax law,law;money\n")
    X, Y = [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], [["label"], ["b"], ["c"]]
    LinearTree(n_jobs=1).fit(X, Y).save(folder / "model")
    OnlineTree(n_jobs=1).fit(X, Y).save(folder / "online")
