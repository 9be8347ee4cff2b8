"""Every broken file is one clear sentence that names the file, the line and the token."""

import bz2
import gzip
import lzma
import re

import numpy as np
import pytest

from labelwood.data import Dataset, load, save
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import from_lists

GOOD = "3 10 5\n0,1 1:0.5 2:1\n2 3:0.25\n4 9:1\n"


def refused(path, message, **options):
    with pytest.raises(FormatError) as caught:
        load(path, **options)
    assert str(caught.value).startswith(str(path))
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def complaint(path):
    """What loading says of a file; just its name if nothing."""
    try:
        load(path).check()
    except FormatError as error:
        return str(error)
    return str(path)


def write(folder, content, name="a.txt"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 10:1", "line 3: the feature id of '10:1' is past the last of 10 features"),
        ("5 1:1", "line 3: the label id '5' is past the last of 5 labels"),
        ("1 3:nan", "line 3: the value of '3:nan' is not finite"),
        ("1 3:-Inf", "line 3: the value of '3:-Inf' is not finite"),
        ("1 3:1e39", "line 3: the value of '3:1e39' does not fit float32"),
        ("1 3:3e38 3:3e38", "line 3: the values of a repeated feature add up"),
        ("-1 3:1", "line 3: the label id '-1' is negative"),
        ("1 -3:1", "line 3: the feature id of '-3:1' is negative"),
        ("1 3:abc", "line 3: the value of '3:abc' is not a number"),
        ("1 3:0x1", "line 3: the value of '3:0x1' is not a number"),
        ("1 3:", "line 3: the feature '3:' has no value"),
        ("1 hello", "line 3: 'hello' is not a feature"),
        ("1 3:1:1", "line 3: the value of '3:1:1' is not a number"),
        ("one 3:1", "line 3: the label id 'one' is not a whole number"),
        ("1,,2 3:1", "line 3: the label id '' is not a whole number"),
        ("1, 3:1", "line 3: the label id '' is not a whole number"),
        ("1.5 3:1", "line 3: the label id '1.5' is not a whole number"),
        ("3:1 4:1", "line 3: the label id '3:1' is not a whole number; a row without labels starts with a blank"),
        ("1 2147483647:1", "line 3: the feature id of '2147483647:1' is larger than 2147483646"),
        ("99999999999999999999999 1:1", "line 3: the label id '9+' is larger than 2147483646"),
        ("1 3:1\x00", "line 3: a NUL byte; this is a binary file"),
        ("1 " + "x" * 100, r"line 3: 'x{40}'\.\.\. is not a feature"),
        ("1 \u00e9:1", "line 3: '\u00e9:1' is not a feature"),
    ],
)
def test_bad_token(tmp_path, line, message):
    path = write(tmp_path, GOOD.replace("2 3:0.25", line))
    refused(path, message)
    refused(path, message, n_threads=2)


def test_ids_without_header_have_a_limit(tmp_path):
    refused(write(tmp_path, "1 2:1\n1 2147483647:1\n"), "line 2: .* larger than 2147483646")
    assert load(write(tmp_path, "1 2147483646:1\n")).X.n_cols == 2**31 - 1


def test_svmlight_tokens(tmp_path):
    refused(
        write(tmp_path, "1 2:1 # fine\n1 0:1\n", "a.svm"), "line 2: .* is 0 in a file .* start from 1", zero_based=False
    )
    refused(write(tmp_path, "# x\n\n1 2\n", "a.svm"), "line 3: the feature '2' has no value")
    refused(write(tmp_path, "1 qid:3 2:1\n", "a.svm"), "line 1: 'qid:3' is not a feature")
    refused(write(tmp_path, "# only a comment\n", "a.svm"), "the file has no rows")


def test_truncated(tmp_path):
    refused(write(tmp_path, GOOD[: GOOD.rindex("4 9")]), r"line 3: the file ends after 2 rows, the header counts 3")
    refused(
        write(tmp_path, GOOD[: GOOD.rindex("1\n")]), "line 4: the feature '9:' has no value; the line may be truncated"
    )
    refused(write(tmp_path, "3 10 5\n"), "line 1: the file ends after 0 rows")
    svm = tmp_path / "a.svm"
    save(svm, Dataset(from_lists([[1], [2]], 3), from_lists([[0], [1]], 2)))
    svm.write_bytes(svm.read_bytes().rsplit(b"1 2:1", 1)[0])
    refused(svm, "line 2: the file ends after 1 rows, the header counts 2")


def test_more_rows_than_the_header_counts(tmp_path):
    refused(write(tmp_path, GOOD + "1 1:1\n2 2:1\n"), "line 5: the file has 5 rows, the header counts 3")
    refused(
        write(tmp_path, "# labelwood rows=1 features=3 labels=2\n# x\n1 1:1\n\n1 2:1\n", "a.svm"),
        "line 5: the file has 2 rows, the header counts 1",
    )


def test_header_past_the_limits(tmp_path):
    refused(write(tmp_path, "1 2147483648 5\n1 1:1\n"), "line 1: the header counts 2147483648 features")
    refused(write(tmp_path, f"{10**30} 3 5\n1 1:1\n"), "line 2: the file ends after 1 rows")


def test_empty_missing_directory(tmp_path):
    refused(write(tmp_path, ""), "the file is empty")
    refused(tmp_path / "none.txt", "no such file")
    refused(tmp_path / "none.npz", "no such file")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "folder.npz").mkdir()
    refused(tmp_path / "folder.txt", "is a directory")
    refused(tmp_path / "folder.npz", "is a directory")
    refused(write(tmp_path, "\n\n"), "the file has no rows")
    refused(write(tmp_path, gzip.compress(b""), "a.txt.gz"), "the file is empty")


@pytest.mark.parametrize("name", ["a.txt", "a.svm"])
def test_binary(tmp_path, name):
    refused(
        write(tmp_path, b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 9, name), r"line 1: a NUL byte; this is a binary"
    )
    refused(write(tmp_path, lzma.compress(GOOD.encode()), name), "line 1")


@pytest.mark.parametrize(("suffix", "module"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_corrupt_compression(tmp_path, suffix, module):
    content = "".join(f"{i % 5} {i}:0.{i}\n" for i in range(5000)).encode()
    packed = bytearray(module.compress(content))
    kind = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}[suffix]
    refused(write(tmp_path, bytes(packed[:-20]), f"a.txt{suffix}"), f"broken or truncated {kind} file")
    refused(write(tmp_path, content, f"a.txt{suffix}"), f"broken or truncated {kind} file")
    for at in range(len(packed) // 3, len(packed) // 3 + 40):
        packed[at] ^= 0x5A
    refused(write(tmp_path, bytes(packed), f"a.txt{suffix}"), f"broken or truncated {kind} file")


def test_unreadable(tmp_path):
    refused(write(tmp_path, GOOD) / "a.txt", "cannot be read")


def arrays(**changes):
    good = {
        "X_indptr": np.array([0, 1, 2]),
        "X_indices": np.array([0, 2]),
        "X_data": np.array([1.0, 2.0]),
        "X_shape": np.array([2, 3]),
        "Y_indptr": np.array([0, 1, 1]),
        "Y_indices": np.array([1]),
        "Y_shape": np.array([2, 2]),
    } | changes
    return {name: value for name, value in good.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X_data": None}, "no array X_data"),
        ({"X_indices": np.array([0, 3])}, r"X_indices must be in \[0, 3\); got 0..3"),
        ({"X_indices": np.array([0, -1])}, "X_indices must be in"),
        ({"X_indices": np.array([0, 2**40])}, "X_indices must be in"),
        ({"X_indices": np.array([0.0, 1.0])}, "X_indices must hold integers"),
        ({"X_data": np.array([1.0, np.nan])}, "must be finite"),
        ({"X_data": np.array([1.0, 1e300])}, "must be finite"),
        ({"X_data": np.array(["a", "b"])}, "X_data must hold real numbers"),
        ({"X_data": np.array([1.0])}, "same length"),
        ({"X_indptr": np.array([0, 3, 2])}, "never decrease"),
        ({"X_indptr": np.array([1, 1, 2])}, "must start at 0"),
        ({"X_indptr": np.array([0, 2]), "X_shape": np.array([1, 3])}, "same number of rows"),
        ({"X_shape": np.array([2, 2**31])}, "X_shape must be"),
        ({"X_shape": np.array([5, 3])}, "X_shape must be"),
        ({"Y_indices": np.array([[1]])}, "Y_indices must be one-dimensional"),
        ({"label_names": np.frombuffer(b"one\n", np.uint8)}, "one name for each of the 2 labels"),
        ({"label_names": np.frombuffer(b"\xff\n\xfe\n", np.uint8)}, "label_names, line 1: not UTF-8 text"),
        ({"label_names": np.array(["a", "b"])}, "label_names must hold bytes"),
    ],
)
def test_bad_npz(tmp_path, changes, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays(**changes))
    refused(path, message)


def test_broken_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays())
    content = path.read_bytes()
    assert load(path).n_rows == 2
    for cut in (3, 50, len(content) // 2, len(content) - 5):
        refused(write(tmp_path, content[:cut], "b.npz"), "archive")
    for at in range(0, len(content), 7):  # a flipped byte is refused or harmless, never another error
        broken = bytearray(content)
        broken[at] ^= 0xFF
        assert complaint(write(tmp_path, bytes(broken), "b.npz")).startswith(str(tmp_path / "b.npz"))
    refused(write(tmp_path, "text", "b.npz"), "not a .npz archive")
    refused(write(tmp_path, "", "b.npz"), "not a .npz archive")
    np.savez(path, **arrays(X_data=np.array([{}, 1], object)))  # pickled
    refused(path, "broken .npz archive")


def test_npz_counts(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays())
    assert load(path, n_features=7).X.n_cols == 7
    refused(path, "the feature id 2 is past the last of 2 features", n_features=2)


def test_saving_refuses_and_leaves_nothing_behind(tmp_path):
    X, Y = from_lists([[1], [2]], 3), from_lists([[0]], 2)
    with pytest.raises(LabelwoodError, match="same number of rows; got 2 and 1"):
        save(tmp_path / "a.txt", Dataset(X, Y))
    with pytest.raises(LabelwoodError, match="is a directory"):
        save(tmp_path.with_name(tmp_path.name), Dataset(X, X), format="xmc")
    with pytest.raises(LabelwoodError, match="cannot be written"):
        save(tmp_path / "absent" / "a.txt", Dataset(X, X))
    with pytest.raises(LabelwoodError, match="must not be compressed again"):
        save(tmp_path / "a.npz.gz", Dataset(X, X))
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / "a.txt"
    small = from_lists([[1]], 3)
    save(path, Dataset(small, small))
    old = path.read_bytes()
    large = from_lists([list(range(3000))] * 40, 3000)
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(LabelwoodError, match="cannot be written"):
            save(path, Dataset(large, large))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_bad_options(tmp_path):
    path = write(tmp_path, GOOD)
    with pytest.raises(LabelwoodError, match="n_features must be between 0 and 2147483647; got -1"):
        load(path, n_features=-1)
