"""The memory of a growing model: a copy takes what the model takes, and nothing of the saved state stays behind."""

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


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.usefixtures("no_sanitizer")
def test_a_copy_keeps_no_memory_but_its_own():
    ended = subprocess.run(
        [sys.executable, "-c", COPY_A_MODEL], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) < 1.3
