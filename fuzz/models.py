"""Fuzz model loading with mutated model directories of every method.

A directory must be refused with a one-line message, or give a model whose predictions are valid. Like an
attacker, the fuzzer usually adjusts the checksums and sizes in the manifest to its changes, so that the later
checks are reached. A model that loads must predict, explain and, if its method can, continue to learn.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from mutate import spoil_array, spoil_bytes, spoil_json

import labelwood
from labelwood import LabelwoodError
from labelwood.methods.text_classifier import TextClassifier, estimator_of

_TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due", "the court decided", "guilty by law"] * 4
_LABELS = [["pets"], ["pets"], ["law"], ["law", "money"], ["court", "law"], ["law"]] * 4
_MANIFEST = "manifest.json"
_TRICKS = ("../x", "/etc/passwd", "a/b", "..", "", "a\x00b", "CON", "x" * 300, "é", "weights.npy", "-", "a\nb")


class Saved:
    """A model directory in memory, and its copy on disk that is mutated and restored."""

    def __init__(self, folder: Path, name: str, model: Any) -> None:
        model.save(folder / "good")
        self.files = {path.name: path.read_bytes() for path in (folder / "good").iterdir()}
        shutil.rmtree(folder / "good")
        self.manifest: dict[str, Any] = json.loads(self.files.pop(_MANIFEST))
        del self.manifest["sha256"]
        self.arrays = {name: np.load(io.BytesIO(data)) for name, data in self.files.items()}
        self.takes_texts = isinstance(model, TextClassifier)
        self.path = folder / name
        self.path.mkdir()
        for file, data in self.files.items():
            (self.path / file).write_bytes(data)

    def put(self, file: str, data: bytes) -> None:
        """Replace a file by a new one, because the old file may still be memory-mapped by a model."""
        path = self.path / file
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def mend(self, touched: set[str]) -> None:
        """Restore the files."""
        for file in touched:
            path = self.path / file
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            if file in self.files:
                path.write_bytes(self.files[file])


def make(folder: Path) -> Callable[[Random], bool]:
    """Make the target. It keeps models in ``folder``.

    Symbolic links may lead out of the folder, and the user may be root, so the target only ever reads what
    they name.
    """
    saved = [Saved(folder, name, model) for name, model in _models().items()]
    rows = _rows()

    def run(random: Random) -> bool:
        base = random.choice(saved)
        touched = _spoil(random, base)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _use(random, base, rows)
        except LabelwoodError as error:
            assert "\n" not in str(error), error
            return False
        finally:
            base.mend(touched)
        return True

    return run


def _models() -> dict[str, Any]:
    """Small models of every method and every storage variant."""
    X, Y = _rows(), [["a"], ["b"], ["a", "c"], ["d"], ["e", "b"], ["f"]] * 5
    X = sp.vstack([X] * 5).tocsr()
    found: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {
        "blend": {"models": ["linear-tree", "craft-forest"]},
        "ldsm-forest": {"n_trees": 2},
        "ranker": {"models": ["linear-tree", "craft-forest"], "n_boosted": 3},
    }
    for name, method in labelwood.METHODS.items():
        found[name] = method(n_jobs=1, random_state=0, **settings.get(name, {})).fit(X, Y)
    found["dense"] = labelwood.LinearTree(n_jobs=1, arity=2, max_leaf=2, weight_threshold=0.0, n_trees=2).fit(X, Y)
    found["int8"] = labelwood.LinearTree(n_jobs=1, arity=2, max_leaf=2).fit(X, Y).quantize("int8")
    found["rerank"] = labelwood.CraftForest(n_jobs=1, n_trees=2, rerank=True).fit(X, Y)
    found["calibrated"] = (
        labelwood.LinearTree(n_jobs=1).fit(X, Y).calibrate(X, Y).choose_thresholds(X, Y, per_label=True)
    )
    online = labelwood.OnlineTree(n_jobs=1, max_leaf=2).fit(X, Y)
    online.labels.retire("d")
    online.labels.merge("f", "e")
    found["retired"] = online
    found["frozen"] = labelwood.OnlineTree(n_jobs=1).fit(X, np.eye(30, 7, dtype=np.float32)).freeze()
    for name, encoder in (
        ("tfidf", labelwood.TfidfEncoder(n_jobs=1)),
        ("hashing", labelwood.HashingEncoder(n_features=64, n_jobs=1)),
    ):
        found[name] = TextClassifier(labelwood.OnlineTree(n_jobs=1), encoder).fit(_TEXTS, _LABELS)
    named = labelwood.Ranker(["linear-tree"], n_jobs=1, n_boosted=3)
    texts = {label: f"all about {label}" for labels in _LABELS for label in labels}
    found["named"] = TextClassifier(named, labelwood.TfidfEncoder(n_jobs=1)).fit(
        _TEXTS * 12, _LABELS * 12, label_texts=texts
    )
    return found


def _rows() -> Any:
    return sp.random_array((6, 12), density=0.5, random_state=np.random.default_rng(0), dtype=np.float32, format="csr")


def _spoil(random: Random, base: Saved) -> set[str]:
    """Mutate the directory; return the names of the files to restore."""
    manifest, touched = json.loads(json.dumps(base.manifest)), {_MANIFEST}
    forged = random.random() < 0.9
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        file = random.choice(tuple(base.files))
        kind = random.choices(range(5), (10, 5, 3, 1, 1))[0]
        if kind == 0:
            array = spoil_array(random, base.arrays[file], list(base.arrays.values()))
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, version=(1, 0))
            _replace(base, manifest, file, stream.getvalue(), array if forged else None)
        elif kind == 1:
            manifest = spoil_json(random, manifest)
        elif kind == 2:
            _replace(base, manifest, file, spoil_bytes(random, base.files[file]), True if forged else None)
        elif kind == 3:
            _misplace(random, base, file)
        elif isinstance(files := manifest.get("files") if isinstance(manifest, dict) else None, dict) and files:
            files[random.choice(_TRICKS)] = files[random.choice(tuple(files))]
        touched.add(file)
    try:
        plain = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
        whole = json.dumps({**manifest, "sha256": hashlib.sha256(plain).hexdigest()}).encode()
    except TypeError:  # the mutated manifest is not an object
        whole = json.dumps(manifest).encode()
    base.put(_MANIFEST, spoil_bytes(random, whole) if random.randrange(20) == 0 else whole)
    return touched


def _replace(base: Saved, manifest: Any, file: str, data: bytes, shown: Any) -> None:
    """Write a file; unless ``shown`` is None, adjust its entry in the manifest."""
    if not (base.path / file).is_dir():
        base.put(file, data)
    files = manifest.get("files") if isinstance(manifest, dict) else None
    entry = files.get(file.removesuffix(".npy")) if isinstance(files, dict) else None
    if shown is None or not isinstance(entry, dict):
        return
    entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if shown is not True:
        entry |= {"dtype": shown.dtype.str, "shape": list(shown.shape)}


def _misplace(random: Random, base: Saved, file: str) -> None:
    path = base.path / file
    if path.is_dir():
        return
    path.unlink(missing_ok=True)  # an earlier change may have removed it
    kind = random.randrange(6)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind < 5:
        other = random.choice(tuple(base.files))
        path.symlink_to(random.choice((file, "..", "/dev/zero", "/dev/null", "/etc/passwd", "nowhere", other)))


def _use(random: Random, base: Saved, rows: Any) -> None:
    model = labelwood.load(base.path, verify=random.choice((None, True, False)))
    given = _TEXTS[:4] if base.takes_texts else rows
    k = random.choice((1, 3, 9))
    labels, scores = model.predict_topk(given, k)
    assert labels.shape == scores.shape == (4 if base.takes_texts else 6, k)
    assert np.isfinite(scores).all(), scores
    inner = estimator_of(model)
    ids = inner.topk_ids(model.encode(given) if base.takes_texts else given, k).labels
    assert ((ids >= -1) & (ids < inner.n_labels_)).all(), ids
    for row in ids.tolist():
        known = [label for label in row if label >= 0]
        assert len(set(known)) == len(known), row
    further = random.randrange(8)
    if further == 0:
        model.explain(given[:1], k=2)
    elif further == 1:
        model.predict(given)
    elif further == 2:
        model.predict_topk(given, k, objective="tail")
    elif further == 3:
        model.to_saved()
        inner.describe()
    elif further < 6 and hasattr(inner, "partial_fit"):
        X = model.encode(given) if base.takes_texts else given
        inner.partial_fit(X, inner.predict(X, k=1))
        assert np.isfinite(inner.predict_topk(X, k)[1]).all()
