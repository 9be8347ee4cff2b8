"""Atomic writes: the old or the new content is there, complete, whatever happens; leftovers do not pile up."""

import os
import signal
import stat
import tempfile
import threading

import pytest

from labelwood.errors import LabelwoodError
from labelwood.storage import atomic
from labelwood.storage.atomic import OwnDirectory, atomic_directory, atomic_file, private_directory, remove_leftovers

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def own_files(path):
    if not path.is_dir():
        raise ValueError(path)
    return ["file", "slow", "half"]


OWN = OwnDirectory("directory of this test", own_files)


def write_directory(path, content):
    with atomic_directory(path, OWN) as folder:
        (folder / "file").write_text(content)


def content(path):
    return (path / "file").read_text()


@pytest.fixture(params=[True, False], ids=["exchange", "two renames"])
def exchanges(request, monkeypatch):
    """Both ways to replace a directory: the second is that of systems without renameat2."""
    if not request.param:
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    return request.param


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "file"
    for text in (b"old", b"new"):
        with atomic_file(path) as file:
            file.write(text)
        assert path.read_bytes() == text
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path, error):
    (tmp_path / "file").write_text("old")
    write_directory(tmp_path / "folder", "old")

    def fail_in_file():
        with atomic_file(tmp_path / "file") as file:
            file.write(b"half")
            raise error

    def fail_in_directory(name):
        with atomic_directory(tmp_path / name, OWN) as folder:
            (folder / "half").touch()
            raise error

    for fail in (fail_in_file, lambda: fail_in_directory("folder"), lambda: fail_in_directory("new")):
        with pytest.raises(error):
            fail()
    assert (tmp_path / "file").read_text() == "old"
    assert content(tmp_path / "folder") == "old"
    assert names(tmp_path) == ["file", "folder"]


def test_a_directory_is_written_and_replaced(tmp_path, exchanges):
    path = tmp_path / "deep" / "er" / "folder"
    write_directory(path, "old")
    write_directory(path, "new")
    assert content(path) == "new"
    assert names(path.parent) == ["folder"]


def test_exchange_in_one_step(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    write_directory(one, "one")
    write_directory(other, "other")
    if not atomic.exchange(one, other):
        pytest.skip("this system cannot exchange directories")
    assert (content(one), content(other)) == ("other", "one")
    with pytest.raises(FileNotFoundError, match="absent"):
        atomic.exchange(one, tmp_path / "absent")


def test_links_stay_links(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_directory(tmp_path / "folder", "old")
    (tmp_path / "current").symlink_to("folder")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"new")
    write_directory(tmp_path / "current", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "current").is_symlink()
    assert content(tmp_path / "folder") == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with atomic_file(tmp_path / "pipe") as file:
        file.write(b"content")
    reader.join()
    assert read == [b"content"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_is_never_replaced_by_a_directory(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(LabelwoodError, match="file: exists and is not a directory of this test"):
        write_directory(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"
    with pytest.raises(IsADirectoryError), atomic_file(tmp_path):
        pass
    with pytest.raises(FileNotFoundError, match="absent/file'"), atomic_file(tmp_path / "absent" / "file"):
        pass


def killed_at(number, write):
    """Run ``write`` in a process that is killed before its ``number``-th rename; True if it came that far."""
    child = os.fork()
    if child == 0:
        left = [number]
        rename = os.rename

        def killing(*paths):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(*paths)

        os.rename = os.replace = killing
        write()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@needs_fork
def test_a_crash_between_any_two_renames_loses_nothing(tmp_path, monkeypatch):
    """Without exchange there is a moment without the target: then the old content is complete under another name."""
    monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    path = tmp_path / "folder"
    write_directory(path, "old")
    found = []
    for number in range(10):
        if not killed_at(number, lambda: write_directory(path, "new")):
            break
        if path.exists():
            found.append(content(path))
        else:
            aside = [entry for entry in tmp_path.iterdir() if entry.suffix == ".old"]
            found.append("aside: " + content(aside[0]))
        write_directory(path, "old")
        assert names(tmp_path) == ["folder"], "the next write removes what the crash left"
    assert found == ["old", "aside: old", "new"]


@needs_fork
def test_the_only_copy_is_kept_until_a_write_succeeds(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    path = tmp_path / "folder"
    write_directory(path, "old")
    assert killed_at(1, lambda: write_directory(path, "new"))
    with pytest.raises(RuntimeError), atomic_directory(path, OWN):
        raise RuntimeError
    assert [content(entry) for entry in tmp_path.iterdir()] == ["old"]
    assert names(tmp_path)[0].endswith(".old")


@needs_fork
def test_only_leftovers_of_the_same_target_are_removed(tmp_path):
    with atomic_file(tmp_path / "data"):
        pass
    assert killed_at(0, lambda: write_file(tmp_path / "data"))
    assert killed_at(0, lambda: write_file(tmp_path / "other"))
    for name in (".data.tmp", ".data.12345678.tmp.mine", "data.12345678.tmp", ".data.old"):
        (tmp_path / name).touch()
    assert len(names(tmp_path)) == 7
    write_file(tmp_path / "data")
    kept = [name for name in names(tmp_path) if not name.startswith(".other.")]
    assert kept == [".data.12345678.tmp.mine", ".data.old", ".data.tmp", "data", "data.12345678.tmp"]
    remove_leftovers(tmp_path)
    assert names(tmp_path) == kept


def write_file(path):
    with atomic_file(path) as file:
        file.write(b"new")


def test_a_write_that_goes_on_is_no_leftover(tmp_path):
    """Several writers of one target: each is undisturbed by the others, and the last one wins."""
    with atomic_directory(tmp_path / "folder", OWN) as slow:
        (slow / "slow").touch()
        write_directory(tmp_path / "folder", "quick")
        assert (slow / "slow").exists()
    assert names(tmp_path / "folder") == ["slow"]
    with atomic_file(tmp_path / "file") as slow_file:
        write_file(tmp_path / "file")
        slow_file.write(b"slow")
    assert (tmp_path / "file").read_bytes() == b"slow"
    assert names(tmp_path) == ["file", "folder"]


def test_many_writers_of_one_target(tmp_path):
    errors = []

    def write(number):
        try:
            for _ in range(20):
                write_directory(tmp_path / "folder", str(number))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert content(tmp_path / "folder") in "0123"
    assert names(tmp_path) == ["folder"]


def test_everything_is_flushed_before_it_is_in_place(tmp_path, monkeypatch):
    flushed = []
    fsync = os.fsync

    def noting(descriptor):
        flushed.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def in_place(temporary, target):
        parts = [temporary, *temporary.rglob("*")]
        assert {part.stat().st_ino for part in parts} <= set(flushed)
        placed.append(target)
        temporary.rename(target)

    placed = []
    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(atomic, "_put_in_place", in_place)
    write_directory(tmp_path / "folder", "new")
    assert placed
    assert flushed[-1] == tmp_path.stat().st_ino


@needs_fork
def test_private_directories_of_killed_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    child = os.fork()
    if child == 0:
        with private_directory("labelwood-test", {"metrics"}) as folder:
            (folder / "metrics").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    strangers = [tmp_path / "labelwood-test-mine", tmp_path / f"labelwood-test-{0:016x}"]
    for stranger in strangers:
        stranger.mkdir()
        (stranger / "mine").touch()
    with private_directory("labelwood-test", {"metrics"}) as one, private_directory("labelwood-test", set()) as two:
        assert {one, two, *strangers} == set(tmp_path.iterdir()), "a directory in use is kept, and one of someone else"
        assert stat.S_IMODE(one.stat().st_mode) == 0o700
    assert set(strangers) == set(tmp_path.iterdir())
    assert not left.exists()
