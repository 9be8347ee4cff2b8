"""Batch prediction in shards of rows, each predicted by a copy of the model in some process."""

from __future__ import annotations

import atexit
import secrets
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelwood.executors.work_unit import Unit, complete
from labelwood.hybrid import Hybrid, beside
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, Arrays, Progress, TopK

_SHARD_ROWS = 16_384
_MODEL = "model."
_RESTORED: dict[str, Any] = {}  # the last model of this process, by its token
atexit.register(_RESTORED.clear)  # kernels must go before the interpreter does


class Predicting(Protocol):
    """A fitted estimator."""

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k best label ids of each row."""
        ...

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays."""
        ...


def sharded_topk(model: Predicting, X: CSR, k: int, run: RunContext) -> TopK:
    """The k best labels of each row, by the run's executor; equal to the model's own answer."""
    manifest, arrays = model.to_saved()
    shared = {_MODEL + name: array for name, array in arrays.items()}
    setting = {
        "manifest": manifest,
        "home": type(model).__module__,
        "class": type(model).__name__,
        "token": secrets.token_hex(8),
        "k": k,
        "n_cols": X.n_cols,
        "allowed": None if run.allowed is None else run.allowed.tolist(),
    }
    units = []
    for start in range(0, X.n_rows, _SHARD_ROWS):
        rows = X.rows(start, min(X.n_rows, start + _SHARD_ROWS))
        own: dict[str, npt.NDArray[Any]] = {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data}
        if isinstance(rows, Hybrid):
            own["vectors"] = rows.vectors
        units.append(Unit(f"rows{start}", predict_shard, own, setting, float(rows.nnz + rows.n_rows)))
    found = complete("predict", units, shared, run)
    empty = np.empty((0, k), np.int32), np.empty((0, k), np.float32)
    return TopK(
        np.concatenate([empty[0], *(shard["labels"] for shard in found)]),
        np.concatenate([empty[1], *(shard["scores"] for shard in found)]),
    )


def predict_shard(
    arrays: Arrays, setting: Mapping[str, Any], n_threads: int, progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    """The k best labels of some rows; the model is restored once per process."""
    if setting["token"] not in _RESTORED:
        own = {name.removeprefix(_MODEL): array for name, array in arrays.items() if name.startswith(_MODEL)}
        kind = getattr(import_module(setting["home"]), setting["class"])
        _RESTORED.clear()
        _RESTORED[setting["token"]] = kind.from_saved(setting["manifest"], own, where="a shard's model")
    vectors = arrays.get("vectors")
    n_sparse = setting["n_cols"] - (0 if vectors is None else vectors.shape[1])
    rows = CSR(arrays["indptr"], arrays["indices"], arrays["data"], n_sparse)
    if vectors is not None:
        rows = beside(rows, vectors)
    run = RunContext(n_threads=n_threads)
    run.allowed = None if setting["allowed"] is None else np.array(setting["allowed"], np.int32)
    top = _RESTORED[setting["token"]].topk_rows(rows, setting["k"], run)
    return {"labels": top.labels, "scores": top.scores}
