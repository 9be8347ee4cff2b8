"""Finished units on disk, so that a training that was killed can resume.

A checkpoint is a directory. ``checkpoint.json`` holds the fingerprint of data and parameters. Every finished unit is
one archive of arrays, written atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.data._files import reading
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import CSR
from labelwood.storage.atomic import atomic_file, create_directory

FORMAT, VERSION, MANIFEST = "labelwood-checkpoint", 2, "checkpoint.json"
_PIECE = 1 << 24  # entries hashed at a time


class Checkpoint:
    """The finished units of one training; ``seed`` is the seed of that training."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self.seed = folder, seed

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, resume: bool, seed: int | None, fresh_seed: int, print_of: str, owner: str
    ) -> Checkpoint:
        """Begin a checkpoint, or with ``resume`` continue an existing one.

        ``print_of`` is the fingerprint of data and parameters. A training without a ``seed`` takes the seed of the
        checkpoint, or ``fresh_seed`` if it is new.
        """
        folder = Path(path)
        create_directory(folder)
        known = folder / MANIFEST
        if not known.exists():
            if any(not entry.name.startswith(".") for entry in folder.iterdir()):
                raise LabelwoodError(f"{owner}: checkpoint must be a new or empty directory; {folder} is not")
            begun = {"format": FORMAT, "version": VERSION, "fingerprint": print_of}
            begun |= {"seed": fresh_seed if seed is None else seed}
            with atomic_file(known) as stream:
                stream.write(json.dumps(begun, indent=1).encode() + b"\n")
            return cls(folder, begun["seed"])  # type: ignore[arg-type]  # an integer
        if not resume:
            raise LabelwoodError(
                f"{owner}: checkpoint {folder} holds a training already; resume it or remove the directory"
            )
        with reading(known):
            text = known.read_text(encoding="utf-8")
        try:
            found = json.loads(text)
            parts = (found["format"], found["version"], found["fingerprint"], found["seed"])
        except (ValueError, TypeError, KeyError):
            raise FormatError(f"{known}: is damaged") from None
        if parts[:2] != (FORMAT, VERSION) or type(parts[3]) is not int:
            raise FormatError(f"{known}: is not a checkpoint of this version of Labelwood")
        if parts[2] != print_of or seed not in (None, parts[3]):
            raise LabelwoodError(
                f"{owner}: checkpoint {folder} is of other data, parameters or version; use those again or remove it"
            )
        return cls(folder, parts[3])

    def read(self, names: Iterable[str]) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """The finished units among these names."""
        found = {}
        for name in names:
            path = self._folder / f"{name}.npz"
            if not path.exists():
                continue
            try:
                with reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                    found[name] = dict(archive)
            except (zipfile.BadZipFile, ValueError):
                raise FormatError(f"{path}: is damaged; remove it to have this unit done again") from None
        return found

    def write(self, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Store the result of a finished unit."""
        with atomic_file(self._folder / f"{name}.npz") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]  # its own keyword is no array's name


def fingerprint(facts: Mapping[str, Any], matrices: Iterable[CSR]) -> str:
    """A checksum of plain values and arrays, and of matrices."""
    total = hashlib.blake2b(digest_size=16)

    def plain(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return f"{value.dtype} {value.shape} {hashlib.blake2b(value.tobytes()).hexdigest()}"
        return repr(value)

    total.update(json.dumps(facts, sort_keys=True, default=plain).encode())
    for matrix in matrices:
        total.update(f"{matrix.n_rows} {matrix.n_cols}".encode())
        dense = () if matrix.dense_part is None else (matrix.dense_part,)
        for array in (matrix.indptr, matrix.indices, matrix.data, *dense):
            for start in range(0, len(array), _PIECE):
                total.update(array[start : start + _PIECE].tobytes())
                matrix.let_go()
    return total.hexdigest()
