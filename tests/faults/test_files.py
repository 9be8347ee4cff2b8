"""Writes under faults: whichever system call fails, the complete old or the complete new content is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from labelwood.storage.model_directory import read_model, write_model

HERE = Path(__file__).parent
FEWEST_FAULTS = 400


@pytest.fixture
def folder(tmp_path):
    """A folder in memory if possible: the cost of a flush is not under test."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else tmp_path) as name:
        yield Path(name) / "work"


def test_a_fault_in_any_call_leaves_the_old_or_the_new(injector, folder, capsys):
    folder.mkdir()
    environment = {**os.environ, "LD_PRELOAD": str(injector)}
    done = subprocess.run(
        [sys.executable, HERE / "every_call.py", folder], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(one["faults"] for one in told) >= FEWEST_FAULTS
    assert all(one["old"] and one["new"] for one in told), "some faults must leave the old content and some the new"
    with capsys.disabled():
        print()
        for one in told:
            print(f"{one['what']}: {one['calls']} calls, {one['faults']} faults, old {one['old']}, new {one['new']}")


def as_nobody(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a script as the user nobody, because root could write anywhere."""
    drop = "import os\nif os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
    imports = "import sys\nimport numpy as np\nfrom labelwood.storage.model_directory import read_model, write_model\n"
    return subprocess.run(
        [sys.executable, "-c", imports + drop + script, *map(str, words)], check=False, capture_output=True, text=True
    )


@pytest.fixture
def locked(folder):
    """A folder with a model that its user may read but not write."""
    os.chmod(folder.parent, 0o755)
    write_model(folder / "model", {}, {"a": np.arange(5)})
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def test_writing_to_a_read_only_folder_fails(locked):
    script = """
for place in sys.argv[1:]:
    try:
        write_model(place, {}, {"a": np.zeros(3)})
    except OSError as error:
        print(type(error).__name__)
"""
    done = as_nobody(script, locked / "model", locked / "new")
    assert done.stdout.split() == ["PermissionError"] * 2, done.stderr
    assert [path.name for path in locked.iterdir()] == ["model"]
    assert read_model(locked / "model")[1]["a"].tolist() == list(range(5))


def test_loading_an_unreadable_file_fails(locked):
    (locked / "model" / "a.npy").chmod(0)
    done = as_nobody("try:\n    read_model(sys.argv[1])\nexcept OSError as error:\n    print(error)", locked / "model")
    assert "Permission denied" in done.stdout, done.stderr


def test_a_full_disk_and_a_read_only_disk(folder):
    """Real file systems, if the test may mount them."""
    folder.mkdir()
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("unshare -rm is not allowed here")
    script = """
import numpy as np, os, subprocess, sys
from labelwood.storage.model_directory import read_model, write_model
place = sys.argv[1]
write_model(place + "/model", {}, {"a": np.arange(5)})
try:
    write_model(place + "/model", {}, {"a": np.zeros(1_000_000)})
except OSError as error:
    print(error.strerror)
assert os.listdir(place) == ["model"]
subprocess.run(["mount", "-o", "remount,ro", place], check=True)
try:
    write_model(place + "/model", {}, {"a": np.zeros(1)})
except OSError as error:
    print(error.strerror)
assert read_model(place + "/model")[1]["a"].tolist() == list(range(5))
"""
    mount = f'mount -t tmpfs -o size=1m tmpfs {folder} && exec "$0" -c "$1" {folder}'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, sys.executable, script], check=False, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[:2] == ["No space left on device", "Read-only file system"], done.stderr
