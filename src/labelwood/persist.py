"""A model on disk: a directory of ``manifest.json`` and one ``.npy`` file per array. No pickle.

Writing goes to a directory beside the target, is flushed to disk and renamed into place: a reader sees the
old model or the new one, and a failure leaves the target as it was. Loading maps the arrays read-only, so it
takes milliseconds whatever the size, after checking that every file is what the manifest says.
``docs/file-format.md`` is the full description.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from labelwood import __version__
from labelwood.errors import FormatError, LabelwoodError

FORMAT = "labelwood-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
VERIFY_UP_TO_BYTES = 64 * 2**20

Arrays = dict[str, npt.NDArray[Any]]

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def write_model(path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a model directory, replacing a model that is already there; anything else there is left alone.

    ``manifest`` holds what JSON can hold; the format, the versions, the list of files and the checksums are
    added here.
    """
    target = Path(os.path.realpath(path))  # a link to a model stays a link
    _refuse_what_is_no_model(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    temporary.mkdir()
    try:
        files = {name: _write_array(temporary, name, array) for name, array in sorted(arrays.items())}
        _write_manifest(temporary / MANIFEST, manifest, files)
        _sync_directory(temporary)
        _move_into_place(temporary, target)
    finally:
        # After a success the replaced model, if there was one; after a failure the unfinished one.
        shutil.rmtree(temporary, ignore_errors=True)
    _sync_directory(target.parent)


def read_model(path: str | os.PathLike[str], *, verify: bool | None = None) -> tuple[dict[str, Any], Arrays]:
    """The manifest and the arrays of a model, mapped read-only.

    Types, shapes and sizes are always checked. Checksums are compared if ``verify`` is true, never if it is
    false, and by default for models of at most 64 MB, where it costs a few hundredths of a second.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    files = manifest["files"]
    total = sum(entry["bytes"] for entry in files.values())
    if verify is None:
        verify = total <= VERIFY_UP_TO_BYTES
    return manifest, {name: _map_array(folder, name, entry, verify=verify) for name, entry in files.items()}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a model, checked against its own checksum; the arrays are not touched."""
    try:
        manifest = json.loads(_plain_file(folder, MANIFEST).read_bytes())
    except (ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{folder}: {MANIFEST} is damaged: it is not JSON") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FormatError(f"{folder}: {MANIFEST} is not that of a Labelwood model")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise FormatError(f"{folder}: {MANIFEST} is damaged: format_version is {version!r}")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{folder}: written by Labelwood {manifest.get('library_version')} in format {version}; this is "
            f"Labelwood {__version__}, which reads up to format {FORMAT_VERSION}. Upgrade labelwood."
        )
    if manifest.pop("sha256", None) != hashlib.sha256(_canonical(manifest)).hexdigest():
        raise FormatError(f"{folder}: {MANIFEST} is damaged: its checksum does not match")
    if not isinstance(manifest.get("files"), dict) or not all(map(_is_entry, manifest["files"].values())):
        raise FormatError(f"{folder}: {MANIFEST} is damaged: its list of files is malformed")
    return manifest


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
        "library_version": __version__,
        **manifest,
        "files": files,
    }
    try:
        # Through JSON once, so that the checksum is over what a reader will see (a tuple becomes a list).
        whole = json.loads(json.dumps(whole, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise LabelwoodError(f"save: the manifest must hold plain JSON values; {error}") from None
    whole["sha256"] = hashlib.sha256(_canonical(whole)).hexdigest()
    with path.open("wb") as file:
        file.write(json.dumps(whole, indent=1, allow_nan=False).encode() + b"\n")
        _sync(file)


class _Hashing:
    """A file to write to that also computes the checksum."""

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
        _sync(file)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": hashing.size,
        "sha256": hashing.sha256.hexdigest(),
    }


def _map_array(folder: Path, name: str, entry: Mapping[str, Any], *, verify: bool) -> npt.NDArray[Any]:
    if not _NAME.fullmatch(name):
        raise FormatError(f"{folder}: {MANIFEST} names a file that no model has: {name!r}")
    path = _plain_file(folder, f"{name}.npy")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise FormatError(f"{path}: the file is damaged: {size} bytes, the manifest says {entry['bytes']}")
    with path.open("rb") as file:
        if verify:
            if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
                raise FormatError(f"{path}: the file is damaged: its checksum does not match the manifest")
            file.seek(0)
        try:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
        except ValueError:
            raise FormatError(f"{path}: the file is damaged: it is not an array file") from None
        start = file.tell()
    if list(shape) != entry["shape"] or dtype.str != entry["dtype"] or dtype.kind not in "biuf" or by_column:
        raise FormatError(
            f"{path}: the file is damaged: {dtype.str} {list(shape)}, the manifest says "
            f"{entry['dtype']} {entry['shape']}"
        )
    count = math.prod(shape)
    if start + count * dtype.itemsize != size:
        raise FormatError(f"{path}: the file is damaged: {size} bytes do not hold {dtype} {shape}")
    if count == 0:
        empty = np.empty(shape, dtype)  # nothing to map
        empty.flags.writeable = False
        return empty
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape))


def _plain_file(folder: Path, name: str) -> Path:
    """The path of a file of the model, if it is a regular file and not a link, a device or a directory."""
    path = folder / name
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if name != MANIFEST:
            raise FormatError(f"{folder}: {name} is missing") from None
        what = (
            "it has no manifest.json"
            if folder.is_dir()
            else "a model is a directory"
            if folder.exists()
            else "not found"
        )
        raise FormatError(f"{folder}: not a Labelwood model: {what}") from None
    if not stat.S_ISREG(mode):
        raise FormatError(f"{path}: must be a plain file")
    return path


def _refuse_what_is_no_model(target: Path) -> None:
    """Raise unless the target is free, an empty directory, or a Labelwood model and nothing else."""
    if not os.path.lexists(target):
        return
    advice = "Choose another path or remove it yourself."
    if not target.is_dir():
        raise LabelwoodError(f"save: {target} exists and is not a Labelwood model. {advice}")
    present = {entry.name for entry in target.iterdir()}
    if not present:
        return
    try:
        manifest = json.loads(_plain_file(target, MANIFEST).read_bytes())
        if manifest["format"] != FORMAT:
            raise ValueError
        own = {MANIFEST, *(f"{name}.npy" for name in manifest["files"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise LabelwoodError(f"save: {target} exists and is not a Labelwood model. {advice}") from None
    if present - own:
        stray = min(present - own)
        raise LabelwoodError(
            f"save: {target} holds a model, but also {stray}, which is not part of it. {advice}"
        )


def _move_into_place(temporary: Path, target: Path) -> None:
    """Make the target the new model; what was there, if anything, ends up at the temporary path."""
    if not target.exists():
        temporary.rename(target)
    elif not _exchange(temporary, target):
        aside = temporary.with_suffix(".old")
        target.rename(aside)
        try:
            temporary.rename(target)
        except BaseException:
            aside.rename(target)
            raise
        aside.rename(temporary)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step, where the system can; false if it cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0  # type: ignore[no-any-return]


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    if os.name != "posix":
        return  # other systems cannot open a directory
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
