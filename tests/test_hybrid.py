"""Reading vectors: which arrays are kept as they are, which are converted, which are refused, and with which words."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import LabelwoodError, LinearTree
from labelwood.hybrid import Hybrid, beside, widened
from labelwood.sparse import from_lists
from labelwood.validation.features import as_features, as_vectors

E = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def read(X, **more):
    return as_features(X, owner="Test", **more)


def test_vectors_stay_where_they_are():
    for own in (E, E.astype(np.float16)):
        assert read(own).vectors is own or np.shares_memory(read(own).vectors, own)
        assert read(own).vectors.dtype == own.dtype


def test_mapped_files_stay_mapped(tmp_path):
    np.save(tmp_path / "E.npy", E)
    mapped = np.load(tmp_path / "E.npy", mmap_mode="r")
    assert np.shares_memory(read(mapped).vectors, mapped)


def test_mostly_zeros_become_sparse():
    assert not isinstance(read(np.eye(6, dtype=np.float32)), Hybrid)
    assert isinstance(read({"vectors": np.eye(6, dtype=np.float32)}), Hybrid)


@pytest.mark.parametrize(
    "given",
    [E.astype(np.float64), np.asfortranarray(E), E[::-1][::-1], E[:, ::-1][:, ::-1], E.astype(">f4"), E.tolist()],
    ids=["float64", "fortran", "rows backward", "columns backward", "big endian", "lists"],
)
def test_other_layouts_give_the_same_rows(given):
    found = read(given)
    assert found.vectors.flags.c_contiguous
    assert found.vectors.dtype == np.float32
    np.testing.assert_allclose(found.vectors, E, rtol=1e-6)


def test_bfloat16_is_kept_as_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need the package ml_dtypes")
    given = E.astype(ml_dtypes.bfloat16)
    found = read(given)
    assert found.vectors.dtype == np.uint16
    np.testing.assert_array_equal(widened(found.vectors), given.astype(np.float32))


def test_fixed_size_lists_of_arrow_are_rows():
    pa = pytest.importorskip("pyarrow", reason="Arrow arrays need the package pyarrow")
    whole = pa.FixedSizeListArray.from_arrays(pa.array(E.ravel()), 4)
    for given in (whole, pa.chunked_array([whole[:2], whole[2:]]), whole[1:]):
        np.testing.assert_array_equal(read(given).vectors, E[len(E) - len(given) :])
    with pytest.raises(LabelwoodError, match="missing"):
        read(pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)))


def spoilt(value, dtype=np.float32):
    array = E.astype(dtype)
    array[2, 1] = value
    return array


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (spoilt(np.nan), "Test: X must be finite; it contains NaN or infinity: see row 2 (the first is 0)"),
        (spoilt(1e39, np.float64), "Test: X must be finite; it contains NaN or infinity: see row 2"),
        (spoilt(np.inf).astype(np.float16), "Test: X must be finite; it contains NaN or infinity"),
        (spoilt(np.nan).astype(np.float64), "Test: X must be finite; it contains NaN or infinity"),
        (np.array([["a", "b"]]), "Test: X must hold real numbers; got dtype <U1"),
        (E.astype(complex), "Test: X must hold real numbers. Complex data not supported"),
        (E[0], "Test: X must be two-dimensional"),
        (E[None], "Test: X must be two-dimensional"),
        ({}, "Test: X must have at least one block; got an empty mapping"),
        ({"a": E, "b": E[:3]}, "Test: the blocks of X must have the same number of rows; 'a' has 6, 'b' has 3"),
        ({"a": spoilt(np.nan)}, "Test: block 'a': X must be finite"),
    ],
)
def test_bad_vectors(given, message):
    with pytest.raises(LabelwoodError) as error:
        read(given)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [(E[:0], np.ones((0, 2)), "at least one row"), (E[:, :0], np.ones((6, 2)), "at least one feature")],
    ids=["zero rows", "0 columns"],
)
def test_nothing_to_learn_from(X, Y, message):
    with pytest.raises(LabelwoodError, match=message):
        LinearTree(n_jobs=1).fit(X, Y)


def test_the_width_must_fit():
    with pytest.raises(LabelwoodError, match="X has 4 features, but Test is expecting 5 features"):
        read(E, n_features=5)


def test_blocks_stand_side_by_side():
    words = from_lists([[0], [1], [0], [1], [2], [2]], n_cols=3)
    found = read({"vectors": E, "words": words.to_scipy(), "more": sp.csr_array(np.eye(6)), "other": E[:, :2]})
    expected = np.hstack([words.toarray(), np.eye(6), E, E[:, :2]])
    np.testing.assert_allclose(found.to_csr().toarray(), expected, rtol=1e-6)
    with pytest.raises(LabelwoodError, match="a block of X must be sparse or dense; got a block of both"):
        read({"both": beside(words, E), "vectors": E})


def test_rows_of_both_parts_have_unit_length():
    words = from_lists([[0, 1], [1], [], [1], [2], [2]], n_cols=3)
    vectors = E.copy()
    vectors[1] = 0
    hybrid = beside(words, vectors)
    lengths = np.linalg.norm(words.toarray(), axis=1)
    inverse = np.divide(1, lengths, out=np.zeros(6), where=lengths > 0).astype(np.float32)
    scaled = hybrid.scaled(*hybrid.unit_factors(inverse, 2.0)).to_csr().toarray()
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1, rtol=1e-6)
    of_words, of_vectors = np.linalg.norm(scaled[:, :3], axis=1), np.linalg.norm(scaled[:, 3:], axis=1)
    np.testing.assert_allclose(of_vectors[[0, 3, 4, 5]] / of_words[[0, 3, 4, 5]], 2, rtol=1e-5)
    assert of_vectors[1] == of_words[2] == 0


def test_vectors_are_two_dimensional():
    with pytest.raises(LabelwoodError, match="Test: vectors must be two-dimensional"):
        as_vectors(E[0], owner="Test")


def test_the_weight_of_vectors_moves_what_is_learned():
    words = from_lists([[0], [1]] * 20, n_cols=2).to_scipy()
    vectors = np.tile(np.array([[0.0, 1.0], [1.0, 0.0]], np.float32), (20, 1))
    Y = np.tile(np.eye(2), (20, 1))
    against = {"words": words[[0]], "vectors": vectors[[1]]}  # the words say 0, the vector says 1
    for weight, best in ((0.1, 0), (10.0, 1)):
        model = LinearTree(n_jobs=1, vector_weight=weight).fit({"words": words, "vectors": vectors}, Y)
        assert model.predict_topk(against, 1)[0].tolist() == [[best]]
    with pytest.raises(LabelwoodError, match="vector_weight must be greater than 0; got 0"):
        LinearTree(vector_weight=0).fit(vectors, Y)
