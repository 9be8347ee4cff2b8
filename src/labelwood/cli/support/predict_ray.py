"""Prediction on a Ray cluster with Ray Data: every task reads its own shard of DATA from a shared disk."""

from __future__ import annotations

import atexit
import secrets
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import data
from labelwood.cli.support.columns import columns_for
from labelwood.cli.support.parser import Options
from labelwood.data.mapped_directory import is_directory
from labelwood.data.text_tables import parquet_files
from labelwood.executors import RayExecutor
from labelwood.methods import model_from_saved
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.scoring.thresholds import Objective
from labelwood.sparse import F32

_SHARD_ROWS = 16_384
_RESTORED: dict[str, Model] = {}  # the last model that this process used, by token
atexit.register(_RESTORED.clear)  # free the kernels before the interpreter exits


def shards_of(options: Options) -> list[dict[str, Any]]:
    """Split DATA into shards: row ranges of a data set directory, or Parquet files; none if a file is neither."""
    found = [_shards_of(Path(path), options.format) for path in options.data]
    return [shard for shards in found for shard in shards] if all(found) else []


def _shards_of(path: Path, format: str | None) -> list[dict[str, Any]]:
    if is_directory(path):
        n_rows = data.load(path).n_rows
        starts = range(0, n_rows, _SHARD_ROWS)
        return [
            {"path": str(path.resolve()), "start": start, "stop": min(n_rows, start + _SHARD_ROWS)} for start in starts
        ]
    if format == "parquet" or path.suffix == ".parquet":
        return [{"path": str(file.resolve()), "start": 0, "stop": 0} for file in parquet_files(path)]
    return []


def predict_shards(
    model: Model, shards: list[dict[str, Any]], options: Options, objective: Objective | None
) -> Iterator[tuple[npt.NDArray[Any], F32]]:
    """Yield the labels and scores of each shard, in order."""
    ray = RayExecutor(options.executor if options.executor != "ray" else None).connect()
    ray_data = import_module("ray.data")
    asked = {
        "k": options.k,
        "objective": objective,
        "columns": columns_for(options, model),
        "token": secrets.token_hex(8),
    }
    held = ray.put((model.to_saved(), asked))
    context = ray_data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    found = ray_data.from_items(shards, override_num_blocks=len(shards)).map_batches(
        predict_shard, batch_size=1, fn_args=(held,), batch_format="numpy"
    )
    names = model.label_names
    for batch in found.iter_batches(batch_size=None, batch_format="numpy"):
        yield names.take(np.asarray(batch["labels"])), np.asarray(batch["scores"])


def predict_shard(batch: dict[str, npt.NDArray[Any]], held: Any) -> dict[str, npt.NDArray[Any]]:
    """Predict the best label ids of the rows of one shard."""
    ray = import_module("ray")
    (manifest, arrays), asked = ray.get(held)
    if asked["token"] not in _RESTORED:
        _RESTORED.clear()
        _RESTORED[asked["token"]] = model_from_saved(manifest, arrays, where="the model of a shard")
    model = _RESTORED[asked["token"]]
    estimator = estimator_of(model)
    estimator.n_jobs = 1
    path, start, stop = str(batch["path"][0]), int(batch["start"][0]), int(batch["stop"][0])
    if model.takes == "text":
        columns = asked["columns"]
        texts = data.load_text(
            path, format="parquet", text=columns.text, needs_labels=False, fields=columns.fields
        ).texts
        rows = model.encode(texts)
    else:
        rows = data.load(path, n_features=estimator.n_features_in_).X.rows(start, stop)
    top = estimator.topk_ids(rows, asked["k"], asked["objective"])
    return {"labels": top.labels, "scores": top.scores}
