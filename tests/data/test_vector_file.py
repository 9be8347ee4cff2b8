"""Files of vectors beside texts: mapped, and refused in one line if they are wrong."""

import os

import numpy as np
import pytest

from labelwood import FormatError, LabelwoodError
from labelwood.data import load_vectors
from labelwood.hybrid import widened
from labelwood.validation.features import as_vectors

GOOD = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_file_is_mapped(tmp_path, dtype):
    np.save(tmp_path / "v.npy", GOOD.astype(dtype))
    found = load_vectors(tmp_path / "v.npy", n_rows=4)
    assert isinstance(found, np.memmap)
    assert (found.dtype, found.tolist()) == (dtype, GOOD.tolist())


def test_a_file_of_bfloat16_is_mapped(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need the package ml_dtypes")
    np.save(tmp_path / "v.npy", GOOD.astype(ml_dtypes.bfloat16))
    found = load_vectors(tmp_path / "v.npy", n_rows=4)
    assert isinstance(found, np.memmap)
    bits = as_vectors(found, owner="Test")
    assert np.shares_memory(bits, found)
    np.testing.assert_array_equal(widened(bits), GOOD)
    spoilt = np.array(found)
    spoilt[1, 1] = np.nan
    np.save(tmp_path / "v.npy", spoilt)
    with pytest.raises(LabelwoodError, match="Test: X must be finite; it contains NaN or infinity"):
        as_vectors(load_vectors(tmp_path / "v.npy"), owner="Test")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (GOOD.astype(np.float64), "vectors must be float32 or float16; got float64"),
        (GOOD.astype(np.int32), "vectors must be float32 or float16; got int32"),
        (GOOD.astype(str), "vectors must be float32 or float16; got <U"),
        (np.asfortranarray(GOOD), "the file is in Fortran order"),
        (GOOD[:0], "at least one row and one column; got (0, 3)"),
        (GOOD[:, :0], "at least one row and one column; got (4, 0)"),
        (GOOD.ravel(), "two-dimensional (rows x columns); got 1 dimensions"),
        (GOOD[:3], "one vector per text; got 3 vectors for 4 texts"),
        (GOOD.astype(object), "is no whole .npy file of numbers"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, array, message):
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(FormatError) as refused:
        load_vectors(tmp_path / "v.npy", n_rows=4)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kept", [0, 5, 60, 128, 140, 170])
def test_a_file_cut_short_is_refused(tmp_path, kept):
    path = tmp_path / "v.npy"
    np.save(path, GOOD)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(FormatError, match=r"is no whole \.npy file of numbers") as refused:
        load_vectors(path)
    assert "\n" not in str(refused.value)


def with_header(header, version=1):
    """A .npy file with 64 bytes of data and a header as it is given."""
    content = header.encode("latin-1") + b"\n"
    length = len(content).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + content + bytes(64)


def told(descr="'<f4'", shape="(1, 2)", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


HEADERS = {
    "beyond the file": told(shape=f"({2**40}, {2**40})"),
    "wraps around to nothing": told(shape=f"({2**62}, 4)"),
    "beyond 64 bits": told(shape=f"({'9' * 30}, 2)"),
    "thousands of digits": told(shape=f"({'9' * 5000}, 2)"),
    "negative": told(shape="(-2, -2)"),
    "truth as a number": told(shape="(True, 2)"),
    "signs without end": told(shape=f"({'-' * 8000}1, 2)"),
    "a sum without end": told(shape=f"({'1+' * 3000}1, 2)"),
    "brackets that do not close": "(" * 50,
    "a text that does not end": "'''",
    "a type of types": told(descr="('<f4', (1000000000,))"),
    "a type that NumPy does not know": told(descr="'<f3'"),
    "objects": told(descr="'|O'"),
    "no object": "[]",
    "nothing": "",
    "old Python": told(shape="(1L, 2)"),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=list(HEADERS))
def test_a_hostile_header_is_refused_in_one_line(tmp_path, header):
    (tmp_path / "v.npy").write_bytes(with_header(header))
    with pytest.raises(FormatError, match=r"is no whole \.npy file of numbers") as refused:
        load_vectors(tmp_path / "v.npy")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("shape", ["(4, 3)", "(4,3)", " (4, 3,)"])
def test_headers_of_other_writers_are_read(tmp_path, version, shape):
    (tmp_path / "v.npy").write_bytes(with_header(told(shape=shape), version)[:-64] + GOOD.tobytes())
    assert load_vectors(tmp_path / "v.npy").tolist() == GOOD.tolist()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
@pytest.mark.timeout(30)
def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "v.npy")
    with pytest.raises(FormatError, match="must be a plain file"):
        load_vectors(tmp_path / "v.npy")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "zip.npy").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(FormatError, match="npz archive"):
        load_vectors(tmp_path / "zip.npy")
    for content in ("a,b\n0.25,0.5\n", ""):
        (tmp_path / "text.npy").write_text(content)
        with pytest.raises(FormatError, match=r"is no whole \.npy file of numbers\. Save the vectors with numpy\.save"):
            load_vectors(tmp_path / "text.npy")
    np.savez(tmp_path / "v.npz", GOOD)
    with pytest.raises(FormatError, match="npz archive"):
        load_vectors(tmp_path / "v.npz")
    with pytest.raises(FileNotFoundError):
        load_vectors(tmp_path / "none.npy")
