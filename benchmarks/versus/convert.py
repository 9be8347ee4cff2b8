"""Convert a data set to the input of all drivers: CSR files and one XMC text file in a folder, written once.

Rows are L2-normalised, because some peers normalise and others expect normalised rows. Training rows without
features are left out, because omikuji rejects them.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

SPLITS = ("train", "test")


def find_split(folder: Path, split: str) -> Path:
    """The path of ``<split>.txt`` or ``<split>.txt.xz`` in the folder."""
    for suffix in (".txt", ".txt.xz"):
        path = folder / f"{split}{suffix}"
        if path.exists():
            return path
    raise SystemExit(f"versus: {folder} must contain {split}.txt or {split}.txt.xz")


def read_xmc(path: Path) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Read X and Y of an XMC text file with the header ``rows features labels``."""
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        n_rows, n_features, n_labels = (int(word) for word in file.readline().split())
        X, labels = load_svmlight_file(
            io.BytesIO(file.read()), n_features=n_features, multilabel=True, zero_based=True, dtype=np.float32
        )
    if X.shape[0] != n_rows:
        raise SystemExit(f"versus: the header of {path} says {n_rows} rows; the file has {X.shape[0]}")
    counts = [len(row) for row in labels]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.fromiter((int(label) for row in labels for label in sorted(row)), np.int32, int(indptr[-1]))
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(n_rows, n_labels))
    return normalize(X, copy=False), Y


def write_xmc(path: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
    """Write the two matrices as an XMC text file."""
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for row in range(X.shape[0]):
            labels = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]]))
            inside = slice(X.indptr[row], X.indptr[row + 1])
            pairs = " ".join(f"{i}:{v:.6g}" for i, v in zip(X.indices[inside], X.data[inside], strict=True))
            file.write(f"{labels} {pairs}\n")


def convert(source: Path, target: Path) -> dict[str, Any]:
    """Write the folder unless it is up to date; return the numbers of rows, features and labels."""
    files = {split: find_split(source, split) for split in SPLITS}
    sizes = {path.name: path.stat().st_size for path in files.values()}
    done = target / "facts.json"
    if done.exists():
        facts = dict(json.loads(done.read_text()))
        if facts.get("sizes") == sizes:
            return facts
        shutil.rmtree(target)
    target.mkdir(parents=True, exist_ok=True)
    facts = {"sizes": sizes}
    for split, path in files.items():
        X, Y = read_xmc(path)
        if split == "train":
            kept = np.diff(X.indptr) > 0
            facts |= {"features": X.shape[1], "labels": Y.shape[1], "left_out": int((~kept).sum())}
            X, Y = X[kept], Y[kept]
            write_xmc(target / "train.txt", X, Y)
        facts |= {f"{split}_rows": X.shape[0], f"{split}_nonzeros": int(X.nnz)}
        sp.save_npz(target / f"{split}_X.npz", X, compressed=False)
        sp.save_npz(target / f"{split}_Y.npz", Y, compressed=False)
    done.write_text(json.dumps(facts))
    return facts
