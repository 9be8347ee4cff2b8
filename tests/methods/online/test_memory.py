"""The memory of a growing model: it grows with what was learned, a copy takes what the model takes, no more."""

import subprocess
import sys

import pytest

COPY_A_MODEL = """
import re
import numpy as np, scipy.sparse as sp
from labelwood import OnlineTree

def held():
    return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])

random = np.random.default_rng(0)
X = sp.random_array((2500, 12000), density=0.003, random_state=random, dtype=np.float32, format="csr")
model = OnlineTree(n_jobs=1).fit(X, [[int(label)] for label in random.integers(0, 2000, 2500)])
OnlineTree.from_saved(*model.to_saved(), where="copy")  # what is built once
before = held()
copy = OnlineTree.from_saved(*model.to_saved(), where="copy")
model.to_saved()
print((held() - before) / model.describe()["bytes"])
"""

LEARN_TEXTS = """
import pathlib, re, sys, tempfile
import numpy as np
from labelwood import HashingEncoder, METHODS, TextClassifier

def held():
    return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])

def texts(n_rows):
    random = np.random.default_rng(0)
    words = (20_000 * random.random((n_rows, 60)) ** 4).astype(int).tolist()
    labels = (3_000 * random.random((n_rows, 5)) ** 2).astype(int).tolist()
    return [" ".join(f"w{word}" for word in row) for row in words], [sorted({*map(str, row)}) for row in labels]

def made():
    return TextClassifier(METHODS[sys.argv[1]](n_jobs=1), HashingEncoder(n_jobs=1))

warm = made().fit(*texts(3))  # what is built once
given = texts(int(sys.argv[2]))
before = held()
model = made().fit(*given)
grown = held() - before
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/model")
    on_disk = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())
print(grown, on_disk)
"""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
    pytest.mark.usefixtures("no_sanitizer"),
]


def printed(script, *words):
    ended = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return [float(figure) for figure in ended.stdout.split()]


def test_a_copy_keeps_no_memory_but_its_own():
    (share,) = printed(COPY_A_MODEL)
    assert share < 1.3


@pytest.mark.parametrize("method", ["online-tree", "online-forest"])
def test_a_model_of_ten_texts_takes_next_to_nothing(method):
    """Nothing is allocated ahead."""
    grown, on_disk = printed(LEARN_TEXTS, method, "10")
    assert grown < 2e6
    assert on_disk < 0.5e6


def test_a_model_of_a_thousand_texts_takes_what_it_learned():
    """Weights and sums of squares, and little beside them; the state on disk has the lanes in use only."""
    grown, on_disk = printed(LEARN_TEXTS, "online-tree", "1000")
    assert on_disk < 35e6
    assert grown < 1.6 * on_disk
