"""Mapped files: the bytes, read-only; closed descriptors; unmapped when the last array is gone."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labelwood.storage.mapped_file import map_file

posix = pytest.mark.skipif(os.name != "posix", reason="limits and lists of descriptors are POSIX's")

MANY_TREES = """
import resource, sys
import numpy as np
import labelwood
from labelwood import OnlineForest
X, Y = np.eye(4, dtype=np.float32), [["a"], ["b"], ["c"], ["d"]]
model = OnlineForest(n_trees=20, n_jobs=1).fit(X, Y)
model.save(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
loaded = labelwood.load(sys.argv[1])
np.testing.assert_array_equal(loaded.predict_topk(X, 4)[1], model.predict_topk(X, 4)[1])
print("loaded")
"""


def mapped(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        return map_file(file, path.stat().st_size)


def test_the_bytes_read_only(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(256)) * 40)
    found = mapped(path)
    assert found.tobytes() == path.read_bytes()
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        found.flags.writeable = True


@posix
def test_a_view_keeps_the_pages_and_the_last_one_unmaps_them(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"labelwood" * 1000)

    def is_mapped():
        return str(path) in Path("/proc/self/maps").read_text()

    if not Path("/proc/self/maps").exists():
        pytest.skip("mappings are listed in /proc")
    view = mapped(path)[9:18]
    gc.collect()
    assert is_mapped()
    assert view.tobytes() == b"labelwood"
    del view
    gc.collect()
    assert not is_mapped()


@posix
def test_what_cannot_be_mapped_is_an_error_of_the_system():
    reader, writer = os.pipe()
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe, pytest.raises(OSError, match=r"device|support|argument"):
        map_file(pipe, 1)


@posix
def test_a_model_of_more_files_than_descriptors(tmp_path):
    command = [sys.executable, "-c", MANY_TREES, str(tmp_path / "model")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout == "loaded\n", ended.stderr
    assert len(list((tmp_path / "model").iterdir())) > 64
