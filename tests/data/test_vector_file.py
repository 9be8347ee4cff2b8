"""Files of vectors beside texts: mapped, and refused in one line if they are wrong."""

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


@pytest.mark.parametrize("shape", [(10**6, 3), (2**62, 3), (2**63, 2**63), (-4, 3)])
def test_a_header_that_promises_other_rows_is_refused(tmp_path, shape):
    with open(tmp_path / "v.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        file.write(GOOD.tobytes())
    with pytest.raises(FormatError, match=r"is no whole \.npy file of numbers") as refused:
        load_vectors(tmp_path / "v.npy")
    assert "\n" not in str(refused.value)


def test_other_files_are_refused(tmp_path):
    for content in ("a,b\n0.25,0.5\n", ""):
        (tmp_path / "text.npy").write_text(content)
        with pytest.raises(FormatError, match=r"is no whole \.npy file of numbers\. Save the vectors with numpy\.save"):
            load_vectors(tmp_path / "text.npy")
    (tmp_path / "zip.npy").write_bytes(b"PK and nothing more")
    with pytest.raises(FormatError, match="npz archive"):
        load_vectors(tmp_path / "zip.npy")
    np.savez(tmp_path / "v.npz", GOOD)
    with pytest.raises(FormatError, match="npz archive"):
        load_vectors(tmp_path / "v.npz")
    with pytest.raises(FileNotFoundError):
        load_vectors(tmp_path / "none.npy")
