"""Fuzz the readers of all file formats with mutated files.

A file must be refused with a one-line message, or give a valid data set. The result of the row parser is
compared with that of its twin, so that wrong numbers are found as well as crashes. Mutated texts are also
given to the encoders.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from mutate import spoil_bytes

from labelwood import HashingEncoder, LabelwoodError, TfidfEncoder, _core
from labelwood.data import Dataset, TextDataset, holds_text, load, load_text, save
from labelwood.packed.tree_shape import hierarchy_tree
from labelwood.sparse import CSR
from tests.reference import parse as twin

_XMC = (
    b"3 6 4\n0,2 1:0.5 3:1\n 0:2\n3 5:-1e-3 2:7 2:1\n",
    b"0 1:1\n1,2,3 0:0.25 4:1e10\n",
    b"1 2 3\n\n",
    b"0,1\t3:1.5\t4\r\n2 1 2 3\r\n",
    b"2 2147483646 2147483646\n2147483645 2147483645:1\n0 0:3.4028235e38\n",
)
_SVMLIGHT = (
    b"# labelwood rows=2 features=5 labels=3\n0,2 0:1 3:0.5\n1 4:2 # note\n",
    b"1 1:0.5 2:1\n3,4 5:1.25 # a\n\n2:1\n",
    b"1:0.5 7:1e-40\n",
)
_TEXTS: dict[str, tuple[bytes, ...]] = {
    ".csv": (b'title,abstract,tags\nCats,"a, ""b""\nc",pets;animals\nTax law,x,law\n', b"text;labels\na;b|c\n"),
    ".tsv": (
        b"text\tlabels\nCats and dogs\tpets,animals\nx\t\n",
        b"Cats\t<http://x/1> <http://x/2>\nDogs\t<http://x/1>\n",
    ),
    ".jsonl": (
        b'{"text": "cats", "labels": ["pets", 1]}\n{"text": null, "labels": "a;b"}\n',
        b'[{"title": ["a", "b"], "label": 3, "x": {"y": [1e5, true]}}]\n',
    ),
    ".ft": (b"__label__pets cats and dogs\n__label__law __label__tax tax law \xc3\xa9\n",),
    ".txt": (b"one text a line\nanother \xe2\x80\xa8 text\n\n",),
}
_NAMES = (b"pets\nlaw\n\xc3\xa9\n", b"a\r\nb\n\n")
_HIERARCHIES = (b'[["a", "b"], {"group": ["c"]}]', b"[3, 3, 3, -1]", b'{"x": ["a"], "y": ["b", "c"]}')
_COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_ENCODERS = (
    HashingEncoder(n_features=50, n_jobs=1),
    HashingEncoder(n_features=7, analyzer="char", ngram_range=(1, 3), n_jobs=1),
    TfidfEncoder(n_jobs=1, token_length=1, ngram_range=(1, 2)),
    TfidfEncoder(n_jobs=1, analyzer="char_wb", ngram_range=(2, 3)).fit(["a few texts", "to learn from"]),
)


def make(folder: Path) -> Callable[[Random], bool]:
    """Make the target. It writes to ``folder``."""
    parquet, npz = _parquet(), _npz(folder)

    def run(random: Random) -> bool:
        choose = random.choices(range(8), (34, 16, 20, 6, 6, 6, 8, 4))[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if choose < 2:
                    _rows(random, folder, svmlight=choose == 1)
                elif choose == 2:
                    _documents(random, folder)
                elif choose == 3:
                    path = folder / "data.npz"
                    path.write_bytes(spoil_bytes(random, random.choice(npz)))
                    load(path).check()
                elif choose == 4:
                    _compressed(random, folder)
                elif choose == 5:
                    _named(random, folder)
                elif choose == 6:
                    _encoded(random)
                else:
                    _other(random, folder, parquet)
            except LabelwoodError as error:
                assert "\n" not in str(error), error
                return False
        return True

    return run


def _rows(random: Random, folder: Path, *, svmlight: bool) -> None:
    content = spoil_bytes(random, random.choice(_SVMLIGHT if svmlight else _XMC))
    path = folder / ("rows.svm" if svmlight else "rows.txt")
    path.write_bytes(content)
    _agrees(content if content.endswith(b"\n") else content + b"\n", svmlight, random)
    options: dict[str, Any] = {
        "header": random.choice((None, None, None, False)),
        "n_threads": random.choice((1, 1, 1, 2)),
    }
    if random.randrange(8) == 0:
        options |= {"n_features": random.choice((0, 3, 2**31 - 1)), "zero_based": random.choice((True, False, None))}
    _round_trip(load(path, **options).check(), folder, random)


def _agrees(content: bytes, svmlight: bool, random: Random) -> None:
    """Check that the kernel and its twin give the same arrays, or the same problem at the same place."""
    dialect = {
        "svmlight": svmlight,
        "first_id": random.choice((0, 1)) if svmlight else 0,
        "n_features": 2**31 - 1,
        "n_labels": 2**31 - 1,
    }
    text = np.frombuffer(content, np.uint8)
    found = _core.parse_rows(text, dialect, 1, piece_size=random.choice((7, 1 << 20)))
    try:
        expected = twin.parse_rows(content, **dialect)
    except twin.BadTokenError as bad:
        assert found == (int(bad.problem), bad.begin, bad.end), (content, found, bad)
        return
    assert len(found) == len(expected), (content, found)
    for mine, its in zip(found, expected, strict=True):
        assert np.array_equal(mine, its), (content, mine, its)


def _round_trip(dataset: Dataset, folder: Path, random: Random) -> None:
    if random.randrange(16):
        return
    empty = bool((np.diff(dataset.X.indptr) == 0).any())  # svmlight writes 0:0 for a row without features
    path = folder / random.choice(("again.txt", "again.npz", *(() if empty else ("again.svm",))))
    save(path, dataset, n_threads=1)
    again = load(path, n_threads=1)
    for mine, its in ((dataset.X, again.X), (dataset.Y, again.Y)):
        same = [np.array_equal(getattr(mine, part), getattr(its, part)) for part in ("indptr", "indices", "data")]
        assert all(same) and mine.n_cols == its.n_cols, (path, mine, its)


def _documents(random: Random, folder: Path) -> None:
    suffix = random.choice(tuple(_TEXTS))
    path = folder / f"texts{suffix}"
    path.write_bytes(spoil_bytes(random, random.choice(_TEXTS[suffix])))
    labels = folder / "labels-of-lines.txt"
    labels.write_bytes(random.choice((b"a;b\nc\n\n", spoil_bytes(random, b"0,1 1:1\n2 1:1\n"))))
    holds_text(path)
    format = random.choice((None, None, None, "jsonl", "csv", "tsv", "annif", "fasttext", "lines"))
    told = str(labels) if format == "lines" or suffix == ".txt" else random.choice((None, None, "tags", "x"))
    _sound(
        load_text(
            path,
            format=format,
            labels=told,
            sep=random.choice((None, None, "|", "")),
            needs_labels=random.random() < 0.8,
        )
    )


def _sound(found: TextDataset) -> None:
    found.check()
    assert found.texts and all(type(text) is str for text in found.texts)
    for row in found.labels or ():
        assert all(type(name) is str and name for name in row), row


def _compressed(random: Random, folder: Path) -> None:
    suffix = random.choice(tuple(_COMPRESSIONS))
    packed = _COMPRESSIONS[suffix](random.choice(_XMC))
    path = folder / f"rows.txt{suffix}"
    path.write_bytes(spoil_bytes(random, packed))
    load(path).check()


def _named(random: Random, folder: Path) -> None:
    path, names = folder / "named.txt", folder / "names-of-labels"
    path.write_bytes(b"1 2 3\n0,2 1:1\n")
    names.write_bytes(spoil_bytes(random, random.choice(_NAMES)))
    load(path, label_names=names).check()


def _encoded(random: Random) -> None:
    texts = [spoil_bytes(random, random.choice(_TEXTS[".txt"])).decode("utf-8", "replace") for _ in range(2)]
    texts.append("".join(chr(random.randrange(0x110000)) for _ in range(random.randrange(8))))
    encoder = random.choice(_ENCODERS)
    rows = (
        encoder.encode(texts)
        if hasattr(encoder, "n_features") or hasattr(encoder, "_offsets")
        else encoder.fit_encode(texts)
    )
    assert isinstance(rows, CSR)
    rows.check()


def _other(random: Random, folder: Path, parquet: bytes) -> None:
    if random.randrange(2):
        path = folder / "hierarchy.json"
        path.write_bytes(spoil_bytes(random, random.choice(_HIERARCHIES)))
        hierarchy_tree(str(path), ["a", "b", "c"])
    else:
        path = folder / "table.parquet"
        path.write_bytes(spoil_bytes(random, parquet))
        _sound(load_text(path))


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table({"text": ["cats", "dogs"], "labels": [["a"], ["b", "c"]]}), stream)
    return stream.getvalue()


def _npz(folder: Path) -> list[bytes]:
    found = []
    for number, content in enumerate(_XMC[:2]):
        source = folder / f"seed{number}.txt"
        source.write_bytes(content)
        dataset = load(source)
        if number:
            dataset = Dataset(dataset.X, dataset.Y, tuple(f"n{label}" for label in range(dataset.Y.n_cols)))
        save(folder / "seed.npz", dataset)
        found.append((folder / "seed.npz").read_bytes())
    return found
