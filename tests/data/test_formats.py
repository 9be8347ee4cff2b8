"""What the three formats mean, and that nothing is lost between them."""

import bz2
import gzip
import lzma
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from labelwood.data import Dataset, convert, load, save
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import CSR, from_lists, from_scipy

NAMES = ["a.txt", "a.xmc.gz", "a.txt.bz2", "a.txt.xz", "a.svm", "a.svmlight.gz", "a.libsvm.xz", "a.npz"]


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def dense(matrix):
    return matrix.to_scipy().toarray().tolist()


def same(first, second):
    for name in "XY":
        a, b = getattr(first, name), getattr(second, name)
        assert a.n_cols == b.n_cols
        for part in ("indptr", "indices", "data"):
            x, y = getattr(a, part), getattr(b, part)
            assert x.dtype == y.dtype
            assert x.tobytes() == y.tobytes(), (name, part)
    assert first.label_names == second.label_names


@pytest.fixture
def dataset():
    X = sp.random_array((40, 30), density=0.1, dtype=np.float32, rng=0, format="csr")
    Y = [[i % 7, (i * i) % 7] if i % 5 else [] for i in range(40)]
    return Dataset(from_scipy(X), from_lists(Y, 9), tuple(f"näme {i}" for i in range(9)))


def test_xmc_with_header(tmp_path):
    dataset = load(write(tmp_path, "a.txt", "3 5 4\n0,2 1:0.5 3:-2e-1\n 4:1\n1 2\n"))
    assert dense(dataset.X) == [[0, 0.5, 0, np.float32(-0.2), 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]
    assert dense(dataset.Y) == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert dataset.label_names is None
    dataset.check()


def test_xmc_without_header_counts_from_the_largest_ids(tmp_path):
    path = write(tmp_path, "a.txt", "0,2 1:0.5 3:2\n 6:1\n")
    dataset = load(path)
    assert (dataset.X.n_cols, dataset.Y.n_cols) == (7, 3)
    dataset = load(path, n_features=10, n_labels=5)
    assert (dataset.X.n_cols, dataset.Y.n_cols) == (10, 5)


def test_counts_given_win_over_the_header(tmp_path):
    path = write(tmp_path, "a.txt", "1 5 4\n3 1:1\n")
    dataset = load(path, n_features=50, n_labels=40)
    assert (dataset.X.n_cols, dataset.Y.n_cols) == (50, 40)
    with pytest.raises(FormatError, match="line 2: the label id '3' is past the last of 3 labels"):
        load(path, n_labels=3)


def test_header_that_could_be_a_row(tmp_path):
    path = write(tmp_path, "a.txt", "1 5 4\n3 1:1\n")
    assert load(path).n_rows == 1
    dataset = load(path, header=False)
    assert dense(dataset.X) == [[0, 0, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0]]
    with pytest.raises(FormatError, match="line 1: expected a header"):
        load(write(tmp_path, "b.txt", "3 1:1\n"), header=True)


def test_rows_are_sorted_and_repeats_merged(tmp_path):
    dataset = load(write(tmp_path, "a.txt", "2,0,2 3:1 1:0.5 3:0.25\n"))
    assert dataset.X.indices.tolist() == [1, 3]
    assert dataset.X.data.tolist() == [0.5, 1.25]
    assert dataset.Y.indices.tolist() == [0, 2]
    dataset.check()


@pytest.mark.parametrize(
    ("text", "n_rows"),
    [
        ("2 9 9\n1 1:1\n\n", 2),  # the empty line is the second row
        ("1 9 9\n1 1:1\n\n\r\n", 1),
        ("3 9 9\n\n1 1:1\n\n\n\n", 3),
        ("1 1:1\n\n2 2:1\n\n\n", 3),
        ("1 1:1\n \n", 2),
        ("0 5 4\n", 0),
        ("0 5 4\n\n", 0),
        ("1 2:1\r\n 3:1\r\n", 2),
    ],
)
def test_empty_lines(tmp_path, text, n_rows):
    dataset = load(write(tmp_path, "a.txt", text)).check()
    assert dataset.n_rows == n_rows


def test_svmlight_as_scikit_learn_reads_it(tmp_path):
    text = "# made by hand\n1,3 2:0.5 7:1e-3 # first\n\n 4:1.5\n0 1:2\n2\n"
    path = write(tmp_path, "a.svm", text)
    for zero_based, expected in ((None, "auto"), (True, True), (False, False)):
        X, Y = load_svmlight_file(str(path), multilabel=True, zero_based=expected)
        dataset = load(path, zero_based=zero_based)
        assert dense(dataset.X) == X.astype(np.float32).toarray().tolist()
        assert [dataset.Y.rows(i, i + 1).indices.tolist() for i in range(4)] == [list(row) for row in Y]
    with_zero = load(write(tmp_path, "b.svm", text + "1 0:1\n"))
    assert with_zero.X.n_cols == 8


def test_svmlight_from_scikit_learn_and_back(tmp_path, dataset):
    path = tmp_path / "a.svm"
    X, Y = dataset.X.to_scipy().toarray(), dataset.Y.to_scipy().toarray().astype(int)
    dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=True)
    rows = np.flatnonzero(np.diff(dataset.X.indptr) + np.diff(dataset.Y.indptr))  # it drops rows of nothing
    loaded = load(path, zero_based=True, n_features=30, n_labels=9)
    assert dense(loaded.X) == dense(dataset.X.take(rows))
    assert dense(loaded.Y) == dense(dataset.Y.take(rows))
    save(path, Dataset(dataset.X, dataset.Y))
    X, Y = load_svmlight_file(str(path), multilabel=True, zero_based=True, n_features=30, dtype=np.float32)
    assert X.toarray().tolist() == dense(dataset.X)
    assert [list(row) for row in Y] == [dataset.Y.rows(i, i + 1).indices.tolist() for i in range(40)]


def test_svmlight_auto_with_a_feature_count(tmp_path):
    assert load(write(tmp_path, "a.svm", "1 1:1 5:1\n"), n_features=5).X.indices.tolist() == [0, 4]
    with pytest.raises(FormatError, match="line 2: the feature id of '5:1' is past the last of 5 features"):
        load(write(tmp_path, "b.svm", "1 0:1\n1 5:1\n"), n_features=5)
    with pytest.raises(FormatError, match="line 1: the feature id of '6:1' is past the last of 5 features"):
        load(write(tmp_path, "c.svm", "1 1:1 6:1\n"), n_features=5)


@pytest.mark.parametrize("name", NAMES)
def test_save_and_load_is_identity(tmp_path, dataset, name):
    save(tmp_path / name, dataset)
    loaded = load(tmp_path / name).check()
    if "svm" in name:  # a row of nothing holds an explicit zero there
        assert dense(loaded.X) == dense(dataset.X)
        same(Dataset(dataset.X, loaded.Y, loaded.label_names), dataset)
    else:
        same(loaded, dataset)
    first = (tmp_path / name).read_bytes()
    save(tmp_path / name, loaded)
    assert (tmp_path / name).read_bytes() == first
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]


def test_convert_through_all_formats(tmp_path, dataset):
    rows = np.flatnonzero(np.diff(dataset.X.indptr))
    dataset = Dataset(dataset.X.take(rows), dataset.Y.take(rows), dataset.label_names)
    save(tmp_path / "start.npz", dataset)
    previous = tmp_path / "start.npz"
    for name in [*NAMES, "end.npz"]:
        convert(previous, tmp_path / name)
        previous = tmp_path / name
    same(load(previous), dataset)


def test_format_overrides_the_suffix(tmp_path, dataset):
    save(tmp_path / "a.dat", dataset, format="svmlight")
    assert load(tmp_path / "a.dat", format="svmlight").n_rows == 40
    convert(tmp_path / "a.dat", tmp_path / "b.dat", source_format="svmlight", target_format="npz")
    assert load(tmp_path / "b.dat", format="npz").Y.n_cols == 9
    with pytest.raises(LabelwoodError, match="the format is not known from the suffix"):
        load(tmp_path / "a.dat")
    with pytest.raises(LabelwoodError, match="format must be one of"):
        load(tmp_path / "a.dat", format="csv")


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)])
def test_compressed(tmp_path, suffix, opener):
    path = tmp_path / f"a.txt{suffix}"
    with opener(path, "wb") as file:
        file.write(b"1 3 2\n1 0:1\n")
    assert load(path).X.n_cols == 3


@settings(max_examples=50)
@given(st.lists(st.lists(st.tuples(st.integers(0, 20), st.floats(width=32, allow_nan=False, allow_infinity=False)))))
def test_any_values_come_back(tmp_path_factory, rows):
    rows = [dict(row) for row in rows]
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    X = CSR(
        indptr,
        np.array([i for row in rows for i in sorted(row)], np.int32),
        np.array([row[i] for row in rows for i in sorted(row)], np.float32),
        21,
    )
    dataset = Dataset(X, from_lists([[i % 3] for i in range(len(rows))], 3))
    folder = tmp_path_factory.mktemp("values")
    for name in ("a.txt", "a.svm", "a.npz"):
        save(folder / name, dataset)
        same(load(folder / name), dataset)


def test_threads_do_not_change_the_result(tmp_path, dataset):
    save(tmp_path / "a.txt", dataset, n_threads=1)
    one = (tmp_path / "a.txt").read_bytes()
    save(tmp_path / "a.txt", dataset, n_threads=2)
    assert (tmp_path / "a.txt").read_bytes() == one
    same(load(tmp_path / "a.txt", n_threads=1), load(tmp_path / "a.txt", n_threads=2))
    with pytest.raises(LabelwoodError, match="n_threads must be at least 1; got 0"):
        load(tmp_path / "a.txt", n_threads=0)


def test_no_final_newline_is_read_with_a_warning(tmp_path):
    path = write(tmp_path, "a.txt", "1 3 2\n1 0:1")
    with pytest.warns(UserWarning, match="the last line has no newline"):
        assert load(path).X.data.tolist() == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(write(tmp_path, "b.txt", "1 3 2\n1 0:1\n"))


@pytest.mark.parametrize(
    ("name", "shape", "n_labels"),
    [("bibtex", (4880, 1836), 159), ("delicious", (12920, 500), 983), ("yso_finna_en", (169738, 46761), 24499)],
)
def test_real_data(real_data, name, shape, n_labels):
    dataset = load(real_data(name) / "train.txt.xz").check()
    assert (dataset.n_rows, dataset.X.n_cols, dataset.Y.n_cols) == (*shape, n_labels)
    assert len(dataset.label_names) == n_labels
