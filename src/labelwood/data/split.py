"""Split a data file into rows to train on and held-out rows, by a seed; both files keep the format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labelwood.data._files import Format, guess_format, reading, writing
from labelwood.data.dataset import Dataset
from labelwood.data.load_save import PathLike, load, save
from labelwood.data.text_tables import delimiter_of, parquet_files
from labelwood.data.texts import TextFormat, content_of, named_format, recognized_format
from labelwood.data.vector_file import load_vectors
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import I64


class SplitRows(NamedTuple):
    """The numbers of the rows of each part, from 0, in the order of the file."""

    train: I64
    held_out: I64


def split_rows(n_rows: int, *, share: float, seed: int) -> SplitRows:
    """Choose the held-out rows; the choice depends on the number of rows, the share and the seed alone.

    >>> [part.tolist() for part in split_rows(5, share=0.4, seed=0)]
    [[0, 1, 3], [2, 4]]
    """
    if not 0 < share < 1:
        raise LabelwoodError(f"split: share must be between 0 and 1; got {share}")
    if n_rows < 2:
        raise LabelwoodError(f"split: there must be at least 2 rows; got {n_rows}")
    n_held_out = min(max(1, round(share * n_rows)), n_rows - 1)
    order = np.random.default_rng(seed).permutation(n_rows)
    return SplitRows(np.sort(order[n_held_out:]), np.sort(order[:n_held_out]))


def split_vectors(
    source: PathLike, targets: Sequence[PathLike], *, share: float, seed: int, format: Format | None = None,
    max_memory: int | None = None,
) -> SplitRows:  # fmt: skip
    """Write the two parts of a file of vectors; without ``format``, the suffixes decide."""
    for target in targets:
        guess_format(Path(target), format)  # fails before the long read
    dataset = load(source, format=format, max_memory=max_memory)
    rows = split_rows(dataset.n_rows, share=share, seed=seed)
    for target, part in zip(targets, rows, strict=True):
        save(target, Dataset(dataset.X.take(part), dataset.Y.take(part), dataset.label_names), format=format)
    return rows


def split_texts(
    source: PathLike, targets: Sequence[PathLike], *, share: float, seed: int, format: TextFormat | None = None,
    max_memory: int | None = None,
) -> SplitRows:  # fmt: skip
    """Write the two parts of a file of texts; every record stays as it is."""
    named = named_format(source, format)
    if named == "parquet":
        _check_suffixes(targets, "parquet")
        return _split_parquet(Path(source), targets, share=share, seed=seed)
    content = content_of(source, max_memory)
    kind = recognized_format(content.partition("\n")[0], named, is_named=format is not None)
    _check_suffixes(targets, kind)
    head, records, tail, between = _records(content, kind, str(source))
    rows = split_rows(len(records), share=share, seed=seed)
    for target, part in zip(targets, rows, strict=True):
        with writing(Path(target)) as stream:
            stream.write((head + between.join(records[row] for row in part.tolist()) + tail).encode())
    return rows


def split_array(source: PathLike, targets: Sequence[PathLike], *, share: float, seed: int) -> SplitRows:
    """Write the two parts of a .npy file of vectors beside texts."""
    for target in targets:
        if Path(target).suffix != ".npy":
            raise LabelwoodError(f"split: {target} must end in .npy, as {source} does; both parts keep the format")
    vectors = load_vectors(source)
    rows = split_rows(len(vectors), share=share, seed=seed)
    for target, part in zip(targets, rows, strict=True):
        with writing(Path(target)) as stream:
            np.save(stream, vectors[part])
    return rows


def _records(content: str, kind: TextFormat, where: str) -> tuple[str, list[str], str, str]:
    """Return what comes before the records, the records, what comes after them, and what is between two of them."""
    if kind == "jsonl" and content.lstrip().startswith("["):
        try:
            return "[", [json.dumps(record, ensure_ascii=False) for record in json.loads(content)], "]\n", ",\n"
        except ValueError as error:
            raise FormatError(f"{where}: not JSON ({error})") from None
    lines = [f"{line}\n" for line in content.removesuffix("\n").split("\n")]
    if kind in ("csv", "tsv"):
        csv.field_size_limit(2**31 - 1)
        reader = csv.reader(
            io.StringIO("".join(lines), newline=""), delimiter="\t" if kind == "tsv" else delimiter_of(content)
        )
        ends = [(reader.line_num, bool(row)) for row in reader]
        starts = [0, *(end for end, _ in ends)]
        found = ["".join(lines[start:end]) for start, (end, filled) in zip(starts, ends, strict=False) if filled]
        return found[0] if found else "", found[1:], "", ""
    return "", [line for line in lines if line.strip()] if kind != "lines" else lines, "", ""


def _split_parquet(path: Path, targets: Sequence[PathLike], *, share: float, seed: int) -> SplitRows:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise LabelwoodError(f"{path}: reading Parquet needs pyarrow: pip install 'labelwood[parquet]'") from None
    with reading(path):
        try:
            table = pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in parquet_files(path)])
        except pyarrow.lib.ArrowException as error:
            why = " ".join(str(error).split())
            raise FormatError(f"{path}: not a Parquet file that pyarrow can read ({why})") from None
    rows = split_rows(table.num_rows, share=share, seed=seed)
    for target, part in zip(targets, rows, strict=True):
        with writing(Path(target)) as stream:
            pyarrow.parquet.write_table(table.take(part), stream)
    return rows


def _check_suffixes(targets: Sequence[PathLike], kind: TextFormat) -> None:
    """Refuse a target whose suffix says another format than that of the source."""
    for target in targets:
        named = named_format(target, None)
        if named not in (None, kind) and not (named == "tsv" and kind == "annif"):
            raise LabelwoodError(f"split: {target} says {named}, but the data are {kind}; both parts keep the format")
