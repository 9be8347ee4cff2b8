"""The native parser and writer against their twins, on generated, on mutated and on hard text."""

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import parse as twin
from reference.parse import BadTokenError, Problem, Rows

from labelwood import _core
from labelwood.sparse import CSR, label_matrix

NO_LIMIT = 2**31 - 1


def outcome_of_twin(text, **dialect):
    try:
        return twin.parse_rows(text, **dialect)
    except BadTokenError as bad:
        return (int(bad.problem), bad.begin, bad.end)


def outcome_of_kernel(text, *, n_threads=1, piece_size=1 << 20, **dialect):
    parsed = _core.parse_rows(np.frombuffer(text, np.uint8), dialect, n_threads, piece_size=piece_size)
    return parsed if len(parsed) == 3 else Rows(*parsed)


def matrices(rows):
    X = CSR(rows.x_indptr, rows.x_indices, rows.x_data, rows.feature_end)
    return X, label_matrix(rows.y_indptr, rows.y_indices, rows.label_end)


def assert_same(kernel, expected):
    assert type(kernel) is type(expected), (kernel, expected)
    if not isinstance(expected, Rows):
        assert kernel == expected
        return
    for name, got, wanted in zip(Rows._fields, kernel, expected, strict=True):
        if isinstance(wanted, np.ndarray):
            assert got.dtype == wanted.dtype, name
            assert got.tobytes() == wanted.tobytes(), name  # to the bit, so -0.0 is not 0.0
        else:
            assert got == wanted, name


def number_texts():
    shortest = st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda v: repr(np.float32(v).item()))
    digits = st.from_regex(r"\A[+-]?[0-9]{0,12}\.?[0-9]{0,12}([eE][+-]?[0-9]{1,3})?\Z").filter(bool)
    words = st.sampled_from(["nan", "-Inf", "infinity", "1e39", "1e-60", "0x1p3", "1_0", "--1", ".", "1e", "+.5"])
    return st.one_of(shortest, digits, st.integers(0, 99).map(str), words)


def ids():
    return st.one_of(st.integers(0, 12), st.sampled_from([2**31 - 2, 2**31 - 1, 10**25, 12345678, 123456789])).map(str)


def rows():
    labels = st.lists(st.integers(0, 9), max_size=4).map(lambda row: ",".join(map(str, row)))
    small = st.decimals(0, 10, places=5).map(str)
    feature = st.tuples(st.integers(0, 30), small).map(lambda pair: f"{pair[0]}:{pair[1]}")
    features = st.lists(feature, max_size=6).map(" ".join)
    return st.tuples(labels, features, st.sampled_from(["", "", " ", "\r", "\t \r"])).map(
        lambda parts: f"{parts[0]} {parts[1]}{parts[2]}"
    )


def odd_rows():
    label = st.one_of(ids(), st.sampled_from(["", "-1", "x", "1.5", "-"]))
    feature = st.one_of(
        st.tuples(ids(), number_texts()).map(":".join),
        ids(),
        st.sampled_from(["5:", ":1", "-3:1", "-3", "a:1", "1:2:3", "#", "1:1#2", "\x00", "\r", "é:1", "+1:1", "-:1"]),
    )
    labels = st.lists(label, max_size=3).map(",".join)
    return st.tuples(labels, st.lists(feature, max_size=4)).map(lambda parts: " ".join([parts[0], *parts[1]]))


def texts(row):
    return st.lists(row, max_size=8).map(lambda lines: "".join(f"{line}\n" for line in lines).encode())


def dialects():
    return st.fixed_dictionaries(
        {
            "svmlight": st.booleans(),
            "first_id": st.sampled_from([0, 1]),
            "n_features": st.sampled_from([NO_LIMIT, NO_LIMIT, 25, 0]),
            "n_labels": st.sampled_from([NO_LIMIT, NO_LIMIT, 8, 0]),
        }
    )


@given(texts(rows()), dialects(), st.sampled_from([1, 7, 64, 1 << 20]))
def test_kernel_is_twin_on_good_text(text, dialect, piece_size):
    assert_same(outcome_of_kernel(text, piece_size=piece_size, **dialect), outcome_of_twin(text, **dialect))


@settings(max_examples=400)
@given(texts(st.one_of(rows(), odd_rows())), dialects(), st.sampled_from([1, 7, 64, 1 << 20]))
@example(b"1 0:3e38 0:3e38\n", {"svmlight": False, "first_id": 0, "n_features": 9, "n_labels": 9}, 64)
@example(b" 1 0:3e38 0:3e38 # x\n", {"svmlight": True, "first_id": 0, "n_features": 9, "n_labels": 9}, 64)
def test_kernel_is_twin_on_odd_text(text, dialect, piece_size):
    assert_same(outcome_of_kernel(text, piece_size=piece_size, **dialect), outcome_of_twin(text, **dialect))


@settings(max_examples=400)
@given(texts(rows()), st.data(), dialects())
def test_kernel_is_twin_on_mutated_text(text, data, dialect):
    broken = bytearray(text or b"\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(broken) - 1))
        byte = data.draw(st.sampled_from(b" \t\r\n:,.#-+eE0129xn\x00\xff"))
        action = data.draw(st.sampled_from(["replace", "insert", "delete"]))
        broken[at : at + (action != "insert")] = b"" if action == "delete" else bytes([byte])
        broken = broken or bytearray(b"\n")
    text = bytes(broken).removesuffix(b"\n") + b"\n"
    assert_same(outcome_of_kernel(text, piece_size=16, **dialect), outcome_of_twin(text, **dialect))


@pytest.mark.parametrize("bad_line", [None, 3, 1990])
def test_result_does_not_depend_on_threads_or_pieces(bad_line):
    rng = np.random.default_rng(0)
    lines = [
        ",".join(map(str, rng.integers(0, 50, 3))) + "".join(f" {i}:{rng.random():.5f}" for i in rng.integers(0, 99, 9))
        for _ in range(2000)
    ]
    if bad_line is not None:
        lines[bad_line] = lines[1995] = "1 2:x"
    text = "".join(f"{line}\n" for line in lines).encode()
    dialect = {"svmlight": False, "first_id": 0, "n_features": 99, "n_labels": 50}
    expected = outcome_of_twin(text, **dialect)
    assert isinstance(expected, Rows) == (bad_line is None)
    for n_threads in (1, 2, 5):
        for piece_size in (100, 4096, 1 << 20):
            assert_same(outcome_of_kernel(text, n_threads=n_threads, piece_size=piece_size, **dialect), expected)


def parse_one(number, *, wide):
    """One value through the kernel, with or without text behind it (which decides on the reader)."""
    text = f" 0:{number}\n{'#' * 40 if wide else '#'}\n".encode()
    parsed = outcome_of_kernel(text, svmlight=True, first_id=0, n_features=1, n_labels=0)
    return parsed.x_data[0] if isinstance(parsed, Rows) else Problem(parsed[0])


@settings(max_examples=1000)
@given(number_texts(), st.booleans())
@example("7.038531e-26", True)
@example("1.00000005960464477539062500000000000001", True)  # just above the midpoint of 1 and the next float32
@example("1.000000059604644775390625", True)  # on it
@example("16777217", True)
@example("9007199254740993", True)
@example("0.5000000298023224", False)  # a double on a midpoint that the decimal is not on
@example("3.4028235677973366e38", True)  # the midpoint above the largest float32
@example("3.4028235677973365e38", True)
@example("1e-45", True)
@example("7.1e-46", True)
@example("-7e-46", True)
@example("0e999999999999999999999", True)
@example("1e-999999999999999999999", True)
def test_decimals_are_rounded_once(number, wide):
    expected = twin.parse_decimal(number.encode())
    got = parse_one(number, wide=wide)
    if isinstance(expected, Problem):
        assert got == expected
    else:
        assert np.float32(got).tobytes() == expected.tobytes()


@given(st.integers(0, 2**32 - 1).map(lambda bits: struct.unpack("<f", struct.pack("<I", bits))[0]))
@example(-0.0)
@example(123456789.0)
@example(1e-5)
@example(1e10)
def test_values_are_written_shortest_and_come_back(value):
    value = np.float32(value)
    if not np.isfinite(value):
        return
    rows = Rows(
        *(np.array(a, t) for a, t in [([0, 1], "i8"), ([0], "i4"), ([value], "f4"), ([0, 0], "i8"), ([], "i4")]), 1, 0
    )
    written = _core.format_rows(*matrices(rows), svmlight=False, n_threads=1).tobytes()
    assert written == twin.format_rows(rows, svmlight=False)
    parsed = outcome_of_kernel(written, svmlight=False, first_id=0, n_features=1, n_labels=0)
    assert parsed.x_data.tobytes() == value.tobytes()


@given(texts(rows()), st.booleans(), st.sampled_from([1, 2]))
def test_writer_is_twin(text, svmlight, n_threads):
    rows = twin.parse_rows(text, svmlight=False, first_id=0, n_features=NO_LIMIT, n_labels=NO_LIMIT)
    written = _core.format_rows(*matrices(rows), svmlight=svmlight, n_threads=n_threads).tobytes()
    assert written == twin.format_rows(rows, svmlight=svmlight)


def test_progress_is_called_and_its_error_stops_the_kernel():
    # Values that take the slow reader, so that the kernel is at it for several of its tenths of a second.
    text = np.frombuffer(b"1 2:0.12345678901234567890123e-5 1:0.12345678901234567890123e5\n" * 2_000_000, np.uint8)

    def stop(done):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        _core.parse_rows(
            text, {"svmlight": False, "first_id": 0, "n_features": 9, "n_labels": 9}, 1, stop, piece_size=1 << 16
        )
