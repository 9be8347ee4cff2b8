"""Data larger than 2 GB, beyond 32-bit sizes; ``make test-large`` needs 12 GB of memory and 5 GB of disk."""

from __future__ import annotations

import os

import numpy as np
import pytest

from labelwood import HashingEncoder, _core
from labelwood.data import load
from labelwood.sparse import CSR
from labelwood.storage.model_directory import read_model, write_model

pytestmark = pytest.mark.skipif(
    "LABELWOOD_LARGE" not in os.environ, reason="takes minutes; run it with make test-large"
)
PAST = 2**31 + 2**20


def test_texts_of_more_than_2_gb():
    text = ("some words and more words " * 40_000)[: 2**20]
    texts = [text] * (PAST // len(text) + 1)
    rows = HashingEncoder(n_features=1000, n_jobs=2).encode([*texts, "the last one"])
    assert rows.n_rows == len(texts) + 1
    np.testing.assert_array_equal(rows.rows(0, 1).indices, rows.rows(len(texts) - 1, len(texts)).indices)
    assert rows.rows(len(texts), len(texts) + 1).nnz == 3


def test_a_file_of_rows_of_more_than_2_gb(tmp_path):
    row = b"3 " + b" ".join(b"%d:1.5" % column for column in range(100)) + b"\n"
    block = row * (2**24 // len(row))
    count = 0
    with (tmp_path / "rows.txt").open("wb") as file:
        while file.tell() < PAST:
            file.write(block)
            count += len(block) // len(row)
        file.write(b"4 7:2.5\n")
    dataset = load(tmp_path / "rows.txt", n_threads=2)
    (tmp_path / "rows.txt").unlink()
    assert dataset.X.nnz == 100 * count + 1
    assert dataset.X.rows(count, count + 1).data.tolist() == [2.5]
    assert dataset.Y.indices[-1] == 4
    assert dataset.X.data.nbytes > 1e9


def test_arrays_of_more_than_2_gb(tmp_path):
    array = np.zeros(PAST // 4 + 1, np.float32)
    array[-1] = 7
    write_model(tmp_path / "model", {}, {"a": array})
    del array
    _, arrays = read_model(tmp_path / "model", verify=True)
    assert arrays["a"].nbytes > 2**31
    assert arrays["a"][-1] == 7


def test_a_matrix_of_more_than_2_gb():
    n_rows = PAST // 4 // 64 + 1
    X = CSR(
        np.arange(n_rows + 1, dtype=np.int64) * 64, np.tile(np.arange(64, dtype=np.int32), n_rows),
        np.ones(64 * n_rows, np.float32), 64,
    ).check()  # fmt: skip
    assert X.data.nbytes > 2**31
    assert _core.unit_rows(X.indptr, X.data)[-1] == np.float32(0.125)
