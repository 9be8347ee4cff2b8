"""Models of other tools made by an attacker: no crash, and time and memory in proportion to the files."""

import json
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood.errors import FormatError
from labelwood.importing import import_model
from labelwood.importing.foreign_tree import ForeignTree, with_even_beams
from labelwood.importing.pickled_values import array_of, read_values

MODELS = Path(__file__).parent / "models"
MUCH = 4 * 2**30


def nested(depth: int) -> bytes:
    """The steps to a tuple of two times the same tuple, and so on: few values, and 2^depth paths through them."""
    steps = (b"h" + bytes([number]) + b"h" + bytes([number]) + b"\x86\x940" for number in range(depth))
    return b")\x940" + b"".join(steps) + b"h" + bytes([depth])


PICKLES = {
    "a key so deep that its hash overflows the stack": b"\x80\x04})" + b"\x85" * 1_000_000 + b"K\x01s.",
    "a key whose hash never ends": b"\x80\x04}" + nested(60) + b"K\x01s.",
    "several such keys": b"\x80\x04}(" + nested(60) + b"K\x01u.",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("content", PICKLES.values(), ids=list(PICKLES))
def test_hostile_keys_are_refused(tmp_path, content):
    """In a process of its own, which the first one would end."""
    (tmp_path / "linear_pipeline.pickle").write_bytes(content)
    program = "import sys; from labelwood.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "import", tmp_path, "-o", tmp_path / "model"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=90)
    assert done.returncode == 1, done
    assert "a key that no model needs" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.timeout(60)
def test_a_type_whose_text_never_ends_is_refused():
    """The place of the type's name in an array holds tuples within tuples."""
    kind = b"cnumpy\ndtype\n" + nested(60) + b"\x85R"
    content = b"\x80\x04cnumpy\n_frombuffer\n(C\x04\0\0\0\0" + kind + b"K\x01\x85U\x01CtR."
    with pytest.raises(FormatError, match="a type that no model has: 'tuple'"):
        array_of(read_values(content))


def within(memory, work):
    """The result of work that may take so much memory more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, before[1]))
    try:
        return work()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class FlatModel:
    """As LibMultiLabel's, by name."""

    def __init__(self, weights):
        self.weights, self.bias, self.thresholds = weights, -1.0, 0


class EnsembleTreeModel:
    """As LibMultiLabel's, by name."""

    def __init__(self, trees):
        self.tree_models = trees


def test_claimed_columns_take_no_memory(tmp_path):
    weights = sp.csr_matrix(np.ones((2, 2)))
    weights._shape = (2, 2**31 - 1)
    (tmp_path / "linear_pipeline.pickle").write_bytes(pickle.dumps({"model": FlatModel(weights)}))
    with pytest.raises(FormatError, match="claim 2147483647 columns in a file of"):
        within(MUCH, lambda: import_model(tmp_path))


def test_a_tree_counts_once(tmp_path):
    flat = FlatModel(sp.csc_matrix(np.ones((2, 2))))
    (tmp_path / "linear_pipeline.pickle").write_bytes(pickle.dumps({"model": EnsembleTreeModel([flat] * 100)}))
    with pytest.raises(FormatError, match="one tree twice"):
        import_model(tmp_path)


def test_claimed_members_take_no_memory(tmp_path):
    shutil.copytree(MODELS / "pecos", tmp_path / "model")
    file = next(path for path in sorted((tmp_path / "model").rglob("C.npz")))
    found = sp.load_npz(file).tocsc()
    shape = np.array([2**40, found.shape[1]])
    np.savez(file, indptr=found.indptr, indices=found.indices, data=found.data, shape=shape, format=b"csc")
    with pytest.raises(FormatError, match="every node of a layer"):
        within(MUCH, lambda: import_model(tmp_path / "model"))


def test_claimed_entries_take_no_memory(tmp_path):
    """The header of an array in an archive says that it has 2^45 numbers."""
    shutil.copytree(MODELS / "pecos", tmp_path / "model")
    file = next(path for path in sorted((tmp_path / "model").rglob("W.npz")))
    found = sp.load_npz(file)
    np.savez(file, indptr=found.indptr, indices=found.indices, data=found.data, shape=found.shape, format=b"csr")
    content = file.read_bytes()
    shape = f"'shape': ({len(found.data)},), }}".encode()
    assert shape in content
    file.write_bytes(content.replace(shape, b"'shape': (%d,),}" % 2**45))
    with pytest.raises(FormatError):
        within(MUCH, lambda: import_model(tmp_path / "model"))


@pytest.mark.timeout(60)
def test_an_uneven_tree_is_refused_before_it_is_built():
    """A path of n nodes beside n shallow leaves would need n^2 nodes."""
    n = 30_000
    path = [-1, *range(n)]  # node 0 to node n, each the child of the one before
    shallow = [parent for leaf in range(n) for parent in (0, len(path) + 2 * leaf)]
    parent = np.array([*path, *shallow])
    label = np.full(len(parent), -1)
    leaves = np.setdiff1d(np.arange(len(parent)), parent)
    label[leaves] = np.arange(len(leaves))
    none = np.empty(0, np.int64)
    tree = ForeignTree(parent, label, none, none, none.astype(np.float32), np.zeros(len(parent), np.float32))
    with pytest.raises(FormatError, match="too uneven"):
        within(MUCH, lambda: with_even_beams(tree))


def test_settings_that_are_too_deep_or_too_large(tmp_path):
    shutil.copytree(MODELS / "omikuji", tmp_path / "model")
    file = tmp_path / "model" / "settings.json"
    sound = json.loads(file.read_text())
    for value in ("[" * 100_000, "9" * 5000, json.dumps(sound)[:-1] + ', "n_features": 1e999}', '"\\ud800"'):
        file.write_text(value)
        with pytest.raises(FormatError) as refused:
            import_model(tmp_path / "model", format="omikuji")
        assert "\n" not in str(refused.value)
