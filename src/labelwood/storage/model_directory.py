"""The format of a model on disk: a directory with ``manifest.json`` and one ``.npy`` file per array; no pickle.

Writing is atomic. Reading checks every file against the manifest and maps the arrays read-only, so that it takes
milliseconds for a model of any size. ``docs/develop/file-format.md`` describes the format.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
import re
import shutil
import stat
from collections.abc import Mapping
from importlib.metadata import version as version_of
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.storage.atomic import OwnDirectory, atomic_directory
from labelwood.storage.mapped_file import map_file

FORMAT = "labelwood-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
VERIFY_UP_TO_BYTES = 64 * 2**20

Arrays = dict[str, npt.NDArray[Any]]

# The errors that a damaged manifest may cause while a model is restored; LabelwoodError is a ValueError.
UNSOUND = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_TYPES = rb"[<|](?:b1|[iu][1248]|f[248])"
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '(%b)', 'fortran_order': False, 'shape': (\([0-9, ]{0,200}\)), \} *\n" % _TYPES,
    re.DOTALL,
)
_LONGEST_HEADER = 1024
_ATTEMPTS = 100
_WRITTEN = ("format", "format_version", "library_version", "files", "sha256")
_COUNTED = ("rows", "feature_entries", "label_entries")
_NO_PLAIN_FILE = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV, errno.ENOTDIR)


def write_model(path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a model directory, which replaces a model at ``path``; anything else at ``path`` is an error.

    ``manifest`` holds JSON values. The format, the versions, the list of files and the checksums are added.
    """
    with atomic_directory(path, _MODEL) as folder:
        write_model_files(folder, manifest, arrays)


def change_model(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, Any], *, instead_of: tuple[str, ...]
) -> None:
    """Replace the arrays of a model whose names begin with ``instead_of``; the files of all others are linked.

    Of the new arrays, those that equal the present ones are linked, too. The model appears whole or not at all, like
    one that :func:`write_model` writes, in time that does not depend on the size of the arrays of other names.
    """
    with _Folder(path) as folder:
        files = _read_manifest(folder)["files"]
        kept = {
            name: entry
            for name, entry in files.items()
            if not name.startswith(instead_of) or _equals(folder, name, entry, arrays.get(name))
        }
        with atomic_directory(path, _MODEL) as target:
            for name in kept:
                _link(folder.path / f"{name}.npy", target / f"{name}.npy")
            written = {name: _write_array(target, name, arrays[name]) for name in sorted(arrays.keys() - kept.keys())}
            facts = {name: value for name, value in manifest.items() if name not in _WRITTEN}
            _write_manifest(target / MANIFEST, facts, {**kept, **written})


def _equals(folder: _Folder, name: str, entry: Mapping[str, Any], array: Any) -> bool:
    """True if the file of an array holds this array."""
    if array is None or [array.dtype.str, list(array.shape)] != [entry["dtype"], entry["shape"]]:
        return False
    return bool(np.array_equal(_map_array(folder, name, entry, verify=False), array))


def _link(source: Path, target: Path) -> None:
    """Link a file of a model, or copy it where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def write_model_files(folder: Path, manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the files of a model into a directory that is part of a larger atomic write."""
    files = {name: _write_array(folder, name, array) for name, array in sorted(arrays.items())}
    _write_manifest(folder / MANIFEST, manifest, files)


def read_model(path: str | os.PathLike[str], *, verify: bool | None = None) -> tuple[dict[str, Any], Arrays]:
    """Return the manifest and the arrays of a model, mapped read-only.

    Types, shapes and sizes are always checked. ``verify`` says whether to compare checksums as well; by default, this
    is done for models of at most 64 MB, for which it takes less than a tenth of a second.
    """
    for _ in range(_ATTEMPTS):
        with _Folder(path) as folder:
            try:
                return _read(folder, verify=verify)
            except FormatError:
                if folder.is_still_there():
                    raise  # else the model was replaced while it was read: read the new one
    raise FormatError(f"{path}: the model is replaced faster than it can be read")


def _read(folder: _Folder, *, verify: bool | None) -> tuple[dict[str, Any], Arrays]:
    manifest = _read_manifest(folder)
    files = manifest["files"]
    if verify is None:
        verify = sum(entry["bytes"] for entry in files.values()) <= VERIFY_UP_TO_BYTES
    return manifest, {name: _map_array(folder, name, entry, verify=verify) for name, entry in files.items()}


def fingerprint(path: str | os.PathLike[str]) -> str:
    """A digest of a model's manifest, and so of its files: equal for copies of one model, different for any other."""
    with _Folder(path) as folder:
        return hashlib.sha256(_canonical(_read_manifest(folder))).hexdigest()


class _Folder:
    """An open model directory: all files come from the same model even if it is replaced meanwhile."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._held: int | None = None

    def __enter__(self) -> Self:
        if not self.path.is_dir():
            what = "a model is a directory" if self.path.exists() else "not found"
            raise FormatError(f"{self.path}: not a Labelwood model: {what}")
        if os.open in os.supports_dir_fd:
            self._held = os.open(self.path, os.O_RDONLY)
        return self

    def __exit__(self, *error: object) -> None:
        if self._held is not None:
            os.close(self._held)

    def is_still_there(self) -> bool:
        """True if the path still leads to the directory that was opened."""
        try:
            return self._held is None or os.path.samestat(os.stat(self.path), os.fstat(self._held))
        except FileNotFoundError:
            return True  # removed for good

    def open(self, name: str) -> BufferedReader:
        """Open a file of the model; it must be a regular file or a link to one."""
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self.path / name if self._held is None else name, flags, dir_fd=self._held)
        except FileNotFoundError:
            what = "not a Labelwood model: it has no manifest.json" if name == MANIFEST else f"{name} is missing"
            raise FormatError(f"{self.path}: {what}") from None
        except OSError as error:
            if error.errno in _NO_PLAIN_FILE:
                raise FormatError(f"{self.path / name}: must be a plain file") from None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FormatError(f"{self.path / name}: must be a plain file")
        return os.fdopen(descriptor, "rb")


def _read_manifest(folder: _Folder) -> dict[str, Any]:
    """Read the manifest of a model and check it against its own checksum."""
    where = folder.path
    with folder.open(MANIFEST) as file:
        text = file.read()
    try:
        manifest = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise FormatError(f"{where}: {MANIFEST} is damaged: it is not JSON") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FormatError(f"{where}: {MANIFEST} does not belong to a Labelwood model")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise FormatError(f"{where}: {MANIFEST} is damaged: format_version is {version!r}")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{where}: written by Labelwood {manifest.get('library_version')} in format {version}; "
            f"Labelwood {version_of('labelwood')} reads up to format {FORMAT_VERSION}. Upgrade labelwood."
        )
    given = manifest.pop("sha256", None)
    try:
        matches = given == hashlib.sha256(_canonical(manifest)).hexdigest()
    except ValueError:  # a number that is too large was read as infinity
        matches = False
    if not matches:
        raise FormatError(f"{where}: {MANIFEST} is damaged: its checksum does not match")
    if not isinstance(manifest.get("files"), dict) or not all(map(_is_entry, manifest["files"].values())):
        raise FormatError(f"{where}: {MANIFEST} is damaged: its list of files is malformed")
    return manifest


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("dtype"), str)
        and isinstance(entry.get("sha256"), str)
        and type(entry.get("bytes")) is int
        and isinstance(entry.get("shape"), list)
        and all(type(length) is int and length >= 0 for length in entry["shape"])
    )


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()


def _write_manifest(path: Path, manifest: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    whole = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": version_of("labelwood"),
        **manifest,
        "files": files,
    }
    try:
        # The round trip makes the checksum that of the values a reader gets (a tuple becomes a list).
        whole = json.loads(json.dumps(whole, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise LabelwoodError(f"save: the manifest must hold plain JSON values; {error}") from None
    whole["sha256"] = hashlib.sha256(_canonical(whole)).hexdigest()
    path.write_bytes(json.dumps(whole, indent=1, allow_nan=False).encode() + b"\n")


class _Hashing:
    """A writable file that also computes the checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.sha256, self.size = file, hashlib.sha256(), 0

    def write(self, block: bytes) -> int:
        self.sha256.update(block)
        self.size += len(block)
        return self._file.write(block)


def _write_array(folder: Path, name: str, array: Any) -> dict[str, Any]:
    array = np.asarray(array, order="C")
    if not _NAME.fullmatch(name) or array.dtype.kind not in "biuf":
        raise LabelwoodError(f"save: cannot store array {name!r} of type {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    with (folder / f"{name}.npy").open("xb") as file:
        hashing = _Hashing(file)
        np.lib.format.write_array(hashing, array, version=(1, 0), allow_pickle=False)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": hashing.size,
        "sha256": hashing.sha256.hexdigest(),
    }


def _digest(file: BinaryIO, size: int) -> str:
    if size == 0:  # an empty file cannot be mapped
        return hashlib.sha256().hexdigest()
    # The array maps the same pages later; reading the file would copy them.
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        return hashlib.sha256(whole).hexdigest()


def _map_array(folder: _Folder, name: str, entry: Mapping[str, Any], *, verify: bool) -> npt.NDArray[Any]:
    if not _NAME.fullmatch(name):
        raise FormatError(f"{folder.path}: {MANIFEST} contains an invalid file name: {name!r}")
    damaged = f"{folder.path / name}.npy: the file is damaged"
    with folder.open(f"{name}.npy") as file:
        size = os.fstat(file.fileno()).st_size
        if size != entry["bytes"]:
            raise FormatError(f"{damaged}: {size} bytes, the manifest says {entry['bytes']}")
        if verify and _digest(file, size) != entry["sha256"]:
            raise FormatError(f"{damaged}: its checksum does not match the manifest")
        # NumPy would evaluate the header with Python's parser; this accepts only what write_array writes.
        header = _HEADER.fullmatch(file.readline(_LONGEST_HEADER))
        if header is None or len(header[0]) != 10 + int.from_bytes(header[1], "little"):
            raise FormatError(f"{damaged}: it is not an array file")
        dtype, shape = np.dtype(header[2].decode()), tuple(map(int, re.findall(rb"\d+", header[3])))
        if list(shape) != entry["shape"] or dtype.str != entry["dtype"]:
            raise FormatError(
                f"{damaged}: {dtype.str} {list(shape)}, the manifest says {entry['dtype']} {entry['shape']}"
            )
        if file.tell() + math.prod(shape) * dtype.itemsize != size:
            raise FormatError(f"{damaged}: {size} bytes do not hold {dtype} {shape}")
        if 0 in shape:
            empty = np.empty(shape, dtype)  # an empty array cannot be mapped
            empty.flags.writeable = False
            return empty
        return map_file(file, size)[file.tell() :].view(dtype).reshape(shape)


def read_trained(saved: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check the section of a manifest about the training; return its facts and the seconds of its phases."""
    if not isinstance(saved, dict) or not isinstance(saved.get("seconds"), dict):
        raise FormatError("trained must be an object that contains an object seconds")
    for name in _COUNTED:
        if type(saved[name]) is not int or not 0 <= saved[name] < 2**62:
            raise FormatError(f"trained: {name} must be a count; got {saved[name]!r:.60}")
    return {name: value for name, value in saved.items() if name != "seconds"}, saved["seconds"]


def check_counts(name: str, counts: npt.NDArray[Any], length: int) -> None:
    """Raise unless an array holds ``length`` counts that leave room for further learning."""
    if counts.shape != (length,) or counts.dtype != np.int64 or not ((counts >= 0) & (counts < 2**62)).all():
        raise FormatError(f"{name} must be one integer per label, at least 0")


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise unless the path does not exist, is an empty directory, or holds a model and nothing else."""
    _MODEL.check(Path(os.path.realpath(path)))


def _files_of(target: Path) -> list[str]:
    with _Folder(target) as folder, folder.open(MANIFEST) as file:
        manifest = json.load(file)
    if manifest["format"] != FORMAT:
        raise ValueError(manifest["format"])
    return [MANIFEST, *(f"{name}.npy" for name in manifest["files"])]


_MODEL = OwnDirectory("Labelwood model", _files_of)
