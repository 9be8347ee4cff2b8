"""Data set directories: what was written comes back, from memory or from a stream of text."""

import errno
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood.cli import main
from labelwood.data import Dataset, convert, load, save
from labelwood.data.mapped_directory import write_directory
from labelwood.data.xmc_svmlight import TextOptions, read_parts
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import MappedCSR, from_lists, from_scipy
from labelwood.storage import atomic


def same(one, other):
    for ours, theirs in ((one.X, other.X), (one.Y, other.Y)):
        assert ours.n_cols == theirs.n_cols
        np.testing.assert_array_equal(ours.indptr, theirs.indptr)
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_array_equal(ours.data, theirs.data)
    assert one.label_names == other.label_names


@pytest.fixture
def dataset():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = rng.random((50, 30)) * (rng.random((50, 30)) < 0.2)
    Y = [sorted(rng.choice(7, rng.integers(0, 3), replace=False).tolist()) for _ in range(50)]
    names = tuple(f"label {number}" for number in range(7))
    return Dataset(from_scipy(sp.csr_array(X.astype(np.float32))), from_lists(Y, 7), names)


def test_what_is_saved_comes_back_mapped(dataset, tmp_path):
    save(tmp_path / "rows.lw", dataset)
    found = load(tmp_path / "rows.lw")
    assert isinstance(found.X, MappedCSR)
    same(found, dataset)
    found.check()
    found.X.let_go()
    same(found, dataset)
    np.testing.assert_array_equal(np.load(tmp_path / "rows.lw" / "X_data.npy"), dataset.X.data)
    assert load(tmp_path / "rows.lw", label_names=False).label_names is None
    assert load(tmp_path / "rows.lw", n_features=99).X.n_cols == 99
    save(tmp_path / "rows.lw", Dataset(dataset.X.rows(0, 3), dataset.Y.rows(0, 3)))
    assert load(tmp_path / "rows.lw").n_rows == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_crash_at_a_rename_loses_no_data_set(dataset, tmp_path):
    """The process that replaces a data set is killed at its first rename; the old or the new one is there, complete."""
    path = tmp_path / "rows.lw"
    save(path, dataset)
    shorter = Dataset(dataset.X.rows(0, 3), dataset.Y.rows(0, 3))
    child = os.fork()
    if child == 0:
        os.rename = os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        save(path, shorter)
        os._exit(0)
    os.waitpid(child, 0)
    same(load(path), dataset if load(path).n_rows == dataset.n_rows else shorter)
    save(path, dataset)
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.lw"], "the next write removes leftovers"
    same(load(path), dataset)


@pytest.mark.parametrize("name", ["rows.txt", "rows.xmc.gz", "rows.svm"])
def test_text_is_converted_in_a_stream(name, dataset, tmp_path):
    save(tmp_path / name, dataset)
    convert(tmp_path / name, tmp_path / "rows.lw")
    same(load(tmp_path / "rows.lw"), load(tmp_path / name))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["1,2 3:1 5:0.5", " 1:2", "0", "", "2 4:1\r", "1 0:3"]), min_size=1, max_size=30),
    st.integers(1, 40),
    st.sampled_from(["with header", "without", "cut"]),
)
def test_any_cut_of_the_text_gives_the_same_rows(tmp_path_factory, lines, piece, kind):
    path = tmp_path_factory.mktemp("rows") / "rows.txt"
    rows = "".join(line + "\n" for line in lines)
    path.write_bytes(((f"{len(lines)} 9 4\n" if kind == "with header" else "") + rows).encode())
    options = TextOptions(n_threads=1, header=kind == "with header")
    try:
        whole = load(path, header=kind == "with header")
    except FormatError:
        with pytest.raises(FormatError):
            list(read_parts(path, svmlight=False, options=options, part_bytes=max(piece, 20)))
        return
    parts = list(read_parts(path, svmlight=False, options=options, part_bytes=max(piece, 20)))
    assert sum(part.n_rows for part in parts) == whole.n_rows
    np.testing.assert_array_equal(np.concatenate([part.X.indices for part in parts]), whole.X.indices)
    np.testing.assert_array_equal(np.concatenate([part.X.data for part in parts]), whole.X.data)
    np.testing.assert_array_equal(np.concatenate([part.Y.indices for part in parts]), whole.Y.indices)


def test_ids_of_svmlight_that_start_from_one(tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1 4:2\n1 2:3\n")
    convert(tmp_path / "a.svm", tmp_path / "a.lw")
    same(load(tmp_path / "a.lw"), load(tmp_path / "a.svm"))


def test_a_bad_token_is_told_with_its_line_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("labelwood.data.xmc_svmlight._BYTES_PER_PART", 64)
    lines = ["3 9 4", *["1 2:1 3:1"] * 30, "1 x:1"]
    with gzip.open(tmp_path / "a.txt.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    with pytest.raises(FormatError, match=r"a.txt.gz, line 32: 'x:1' is not a feature"):
        list(read_parts(tmp_path / "a.txt.gz", svmlight=False, options=TextOptions(n_threads=1), part_bytes=64))
    (tmp_path / "short.txt").write_text("9 9 4\n1 2:1\n")
    with pytest.raises(FormatError, match="the file has 1 rows, the header counts 9"):
        convert(tmp_path / "short.txt", tmp_path / "short.lw")
    assert not (tmp_path / "short.lw").exists()
    assert not list(tmp_path.glob(".short*")), "nothing unfinished is left"


def test_damage_is_refused(dataset, tmp_path):
    path = tmp_path / "rows.lw"
    save(path, dataset)
    whole = (path / "X_data.npy").read_bytes()
    (path / "X_data.npy").write_bytes(whole[:-4])
    with pytest.raises(FormatError, match=r"X_data.npy: the file is damaged or truncated"):
        load(path)
    (path / "X_data.npy").write_bytes(whole)
    indices = bytearray((path / "X_indices.npy").read_bytes())
    indices[-4:] = (2**30).to_bytes(4, "little")
    (path / "X_indices.npy").write_bytes(indices)
    with pytest.raises(LabelwoodError, match="column ids must be in"):
        load(path).check()
    manifest = json.loads((path / "dataset.json").read_text())
    (path / "dataset.json").write_text(json.dumps({**manifest, "rows": -1}))
    with pytest.raises(FormatError, match="counts must be integers"):
        load(path)


def proj(folder):
    """A directory of someone else that holds a file dataset.json."""
    folder.mkdir()
    (folder / "dataset.json").write_text('{"name": "my data"}')
    (folder / "thesis.tex").write_text("years of work")


def with_notes(folder, dataset):
    """A data set to which someone added a file."""
    save(folder, dataset, format="lw")
    (folder / "notes.txt").write_text("where the rows come from")


def with_a_folder(folder, dataset):
    """A data set without names to which someone added a folder under the name of one of our files."""
    save(folder, Dataset(dataset.X, dataset.Y), format="lw")
    (folder / "labels.txt").mkdir()
    (folder / "labels.txt" / "mine").write_text("labels by hand")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder, dataset: proj(folder), "exists and is not a Labelwood data set"),
        (with_notes, "holds a Labelwood data set and also notes.txt"),
        (with_a_folder, "holds a Labelwood data set and also labels.txt"),
        (lambda folder, dataset: folder.write_text("a file"), "exists and is not a Labelwood data set"),
    ],
)
@pytest.mark.parametrize("how", ["save", "convert", "command"])
def test_what_is_not_ours_is_never_replaced(dataset, tmp_path, make, message, how, capsys):
    (tmp_path / "in").mkdir()
    source, target = tmp_path / "in" / "rows.txt", tmp_path / "mine"
    save(source, dataset)
    make(target, dataset)
    before = sorted((path, path.read_bytes() if path.is_file() else None) for path in tmp_path.rglob("*"))
    if how == "command":
        assert main(["convert", str(source), str(target), "--to", "lw"]) == 1
        assert re.search(message, capsys.readouterr().err)
    elif how == "save":
        with pytest.raises(LabelwoodError, match=message):
            save(target, dataset, format="lw")
    else:
        with pytest.raises(LabelwoodError, match=message):
            convert(source, target, target_format="lw")
    assert sorted((path, path.read_bytes() if path.is_file() else None) for path in tmp_path.rglob("*")) == before


def test_a_file_that_arrives_during_the_write_is_kept(dataset, tmp_path):
    """The directory is checked again immediately before it is replaced."""
    path = tmp_path / "rows.lw"
    save(path, dataset)

    def parts():
        yield dataset
        (path / "notes.txt").write_text("mine")

    with pytest.raises(LabelwoodError, match=r"also notes.txt"):
        write_directory(path, parts())
    assert (path / "notes.txt").read_text() == "mine"
    same(load(path), dataset)


def test_an_empty_directory_is_taken(dataset, tmp_path):
    (tmp_path / "rows.lw").mkdir()
    save(tmp_path / "rows.lw", dataset)
    same(load(tmp_path / "rows.lw"), dataset)


def test_a_rename_that_fails_loses_nothing(dataset, tmp_path, monkeypatch):
    path = tmp_path / "rows.lw"
    save(path, dataset)
    shorter = Dataset(dataset.X.rows(0, 3), dataset.Y.rows(0, 3))
    monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    renames = os.rename
    for failing in range(3):
        left = [failing]

        def fails(*paths, left=left):
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.EIO, "Input/output error")
            renames(*paths)

        monkeypatch.setattr(os, "rename", fails)
        with pytest.raises(OSError, match="Input/output error"):
            save(path, shorter)
        monkeypatch.setattr(os, "rename", renames)
        assert load(path).n_rows == (3 if failing == 2 else 50)


def test_a_data_set_is_flushed_with_its_parent(dataset, tmp_path, monkeypatch):
    flushed, fsync = set(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (flushed.add(os.fstat(file).st_ino), fsync(file)))
    save(tmp_path / "rows.lw", dataset)
    parts = [tmp_path, tmp_path / "rows.lw", *(tmp_path / "rows.lw").iterdir()]
    assert {"dataset.json", "labels.txt"} <= {part.name for part in parts}
    assert {part.stat().st_ino for part in parts} <= flushed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_conversion_that_is_ended_leaves_nothing(tmp_path, ending):
    with gzip.open(tmp_path / "rows.txt.gz", "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(b"0 1:1\n" * 200_000)
    # A background job ignores SIGINT, and its children inherit that.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from labelwood.cli import main; sys.exit(main())"
    )
    words = ["convert", str(tmp_path / "rows.txt.gz"), str(tmp_path / "rows.lw")]
    with subprocess.Popen([sys.executable, "-c", program, *words], stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob(".rows.lw.*.tmp/X_data.npy")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(ending)
        assert process.wait(60) == (143 if ending == signal.SIGTERM else 130)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.txt.gz"]
