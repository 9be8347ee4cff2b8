"""A small file cannot make its reader need memory or time out of proportion to its size."""

import lzma
import re
import resource
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood.cli import main
from labelwood.data import Dataset, convert, load, load_text, save
from labelwood.data.xmc_svmlight import without_empty_end
from labelwood.errors import FormatError
from labelwood.sparse import from_lists

MANY = 2**31 - 1
LIMIT = 3 * 10**9  # bytes of address space
ADVICE = re.compile(r"If the file is sound, allow more with (--max-memory|max_memory)")


def bomb(path, line, count):
    """Write many equal lines as many equal streams."""
    path.write_bytes(lzma.compress(line * (1 << 20), preset=0) * (count >> 20))
    return path


def run(*words):
    """Run a command with a limit of memory."""
    program = "import sys; from labelwood.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("header.txt", f"1 3 {MANY}\n0 0:1\n"),
        ("id.txt", f"{MANY - 1} 0:1\n0 1:1\n"),
        ("header.svm", f"# labelwood rows=1 features=3 labels={MANY}\n0 0:1\n"),
        ("id.svm", f"{MANY - 1} 1:1\n"),
    ],
)
@pytest.mark.parametrize("command", ["train", "estimate"])
def test_labels_that_a_small_file_claims(tmp_path, name, content, command):
    path = tmp_path / name
    path.write_text(content)
    said = run(command, path, *(["-o", tmp_path / "model"] if command == "train" else []))
    assert said.returncode == 1
    assert f"{MANY} labels need at least {8 * MANY} bytes of memory, but at most 1000000000" in said.stderr
    assert ADVICE.search(said.stderr)
    assert load(path, max_memory=2 * 10**10).Y.n_cols == MANY


def test_labels_that_an_archive_or_a_directory_claims(tmp_path):
    rows = from_lists([[0], [1]], 3)
    for name in ("a.npz", "a.lw"):
        save(tmp_path / name, Dataset(rows, from_lists([[0], [1]], MANY)))
        with pytest.raises(FormatError, match=f"{name}: {MANY} labels need at least"):
            load(tmp_path / name)


def test_many_labels_of_few_rows_are_in_proportion(tmp_path):
    """A sample of a few rows keeps the labels of its data set."""
    (tmp_path / "sample.txt").write_text("1 3 3000000\n0 0:1\n")
    assert load(tmp_path / "sample.txt").Y.n_cols == 3_000_000


@pytest.mark.parametrize("name", ["a.txt.xz", "a.csv.xz"])
def test_a_file_that_decompresses_to_gigabytes(tmp_path, name):
    line = b"0 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8\n" if name != "a.csv.xz" else b"text,labels,text,labels,text,la\n"
    path = bomb(tmp_path / name, line, 32 << 20)
    assert path.stat().st_size < 10**6
    said = run("train", path, "-o", tmp_path / "model")
    assert (said.returncode, ADVICE.search(said.stderr) is not None) == (1, True), said.stderr
    assert re.search(r"its decompressed bytes need at least \d+ bytes of memory, but at most 1000000000", said.stderr)


def test_the_flag_sets_the_limit(tmp_path, capsys):
    path = bomb(tmp_path / "a.txt.xz", b"0 1:1 2:1\n", 1 << 20)
    assert main(["convert", str(path), str(tmp_path / "a.npz"), "--max-memory", "5MB"]) == 1
    assert "but --max-memory allows 5000000" in capsys.readouterr().err
    assert main(["convert", str(path), str(tmp_path / "a.lw"), "--max-memory", "5MB"]) == 1
    assert main(["convert", str(path), str(tmp_path / "a.lw"), "--max-memory", "20MB"]) == 0
    with pytest.raises(FormatError, match="decompressed bytes"):
        load_text(path, format="lines", needs_labels=False, max_memory=5_000_000)


def test_an_archive_that_decompresses_to_gigabytes(tmp_path):
    Y = from_lists([[0], [1]], 2)
    save(tmp_path / "a.npz", Dataset(Y, Y))
    with zipfile.ZipFile(tmp_path / "a.npz") as stored:
        parts = {part: stored.read(part) for part in stored.namelist()}
    header = np.lib.format.header_data_from_array_1_0(np.empty(0, np.float32)) | {"shape": (300_000_000,)}
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            if part != "X_data.npy":
                archive.writestr(part, content)
        with archive.open("X_data.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for _ in range(1200):
                file.write(bytes(10**6))
    with pytest.raises(FormatError, match="its decompressed arrays need at least 12"):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("behind", [b"", b"0 1:1\n"], ids=["only line ends", "a row behind them"])
def test_line_ends_take_little_time(tmp_path, behind):
    """The time of a conversion grows with the bytes, not with their square."""
    seconds = []
    for count in (8 << 20, 32 << 20):
        path = bomb(tmp_path / "a.txt.xz", b"\n", count)
        with lzma.open(path, "ab") as file:
            file.write(behind)
        started = time.process_time()
        if behind:
            assert convert(path, tmp_path / "a.lw", header=False).n_rows == count + 1
        else:
            with pytest.raises(FormatError, match="the file has no rows"):
                convert(path, tmp_path / "a.lw", header=False)
        seconds.append(time.process_time() - started)
    assert seconds[1] < 10, seconds


def plain_without_empty_end(body):
    """The rule, byte by byte."""
    stop, n_empty = len(body), 0
    while stop > 0:
        width = 2 if stop > 1 and body[stop - 2 : stop - 1] == b"\r" else 1
        if stop > width and body[stop - width - 1 : stop - width] != b"\n":
            break
        stop -= width
        n_empty += 1
    return body[:stop], n_empty


@given(st.lists(st.sampled_from([b"x", b"\n", b"\r\n", b"\r"])).map(b"".join), st.integers(2, 6))
def test_empty_lines_at_the_end(text, block):
    body = text + b"\n" if text else text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelwood.data.xmc_svmlight._BYTES_SEARCHED", block)
        found, n_empty = without_empty_end(np.frombuffer(body, np.uint8))
    assert (found.tobytes(), n_empty) == plain_without_empty_end(body)
