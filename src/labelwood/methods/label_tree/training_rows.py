"""Training rows in the form that the kernels of label trees take, and the training of the classifiers on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.executors.work_unit import MILLION, Unit, complete
from labelwood.hybrid import Hybrid, beside
from labelwood.packed.base import pointer_to
from labelwood.packed.label_tree import child_type
from labelwood.packed.tree_shape import LabelTree
from labelwood.resources.label_tree import Plan
from labelwood.resources.memory import resident
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F32, Arrays, MappedCSR, Progress, label_matrix

_LEAST_SPACE = 2**24  # bytes; with less, training would only wait for the file
_LEAST_PAGES = 2**23  # bytes; reading a page of indices or of data may bring in 2 MB around it
_VECTORS = "label vectors"  # a phase
_VECTOR_UNITS = 64
_HELD_BYTES = 16  # per non-zero of a node: 8 for itself, 8 while the next rows are gathered


@dataclass(frozen=True)
class TrainingRows:
    """Rows, and the factor by which each row is multiplied when it is read (None: rows are taken as they are).

    ``vector_scale`` are the factors of the vectors of a hybrid. The rows of nodes with more entries than
    ``most_entries`` are not held a second time, but read in windows. 0: all nodes fit.
    """

    X: CSR
    scale: F32 | None = None
    most_entries: int = 0
    vector_scale: F32 | None = None

    @classmethod
    def of(cls, X: CSR, run: RunContext, *, normalize: bool, vector_weight: float = 1.0) -> TrainingRows:
        """The rows as they are, or of unit length; vectors are multiplied by ``vector_weight``.

        Of the memory that the run's limit leaves, a quarter goes to the rows of nodes in training. If the rows are in a
        file, an eighth goes to pages of the file.
        """
        most_entries = 0
        if run.limit is not None:
            space = max(_LEAST_SPACE, run.limit.bytes - resident())
            most_entries = max(1, space // 4 // (_HELD_BYTES * run.n_threads))
            if isinstance(X, MappedCSR):
                X = replace(X, limit=min(max(_LEAST_PAGES, space // 8), 2 * _LEAST_PAGES + 8 * X.nnz))
        scale, vector_scale = factors(X, normalize=normalize, vector_weight=vector_weight)
        return cls(X, scale, most_entries, vector_scale)

    @property
    def held_bytes(self) -> float:
        """The most bytes that the entries of a node in training take, with the window that is read."""
        return float(_HELD_BYTES * self.most_entries) if self.most_entries else np.inf

    def count(self, Y: CSR, tree: LabelTree, run: RunContext) -> Plan:
        """The features, entries and rows of the nodes of an untrained tree."""
        with run.phase("count") as progress:
            used, entries, members = _core.count_tree(self.X, Y, tree, run.n_threads, progress)
        entries = entries + self.X.width * members[tree.inner]
        sizes = self.X.n_cols, self.X.resident, self.held_bytes
        return Plan(tree, used, entries, members, *sizes, n_columns=self.X.width)

    def shared(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that the training of all trees shares."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "x_indptr": self.X.indptr, "x_indices": self.X.indices, "x_data": self.X.data,
        }  # fmt: skip
        own = {"x_scale": self.scale, "x_vectors": self.X.dense_part, "x_vector_scale": self.vector_scale}
        return arrays | {name: array for name, array in own.items() if array is not None}

    def label_vectors(self, Y: CSR, most: int, run: RunContext) -> CSR:
        """For each label the sum of its rows, of unit length; at most ``most`` sparse entries each, 0: all.

        Other processes make the vectors of ranges of labels.
        """
        setting = {"n_features": self.X.n_cols, "resident": self.X.resident if run.is_local else 0, "most": most}
        if run.is_local:
            with run.phase(_VECTORS) as progress:
                own: dict[str, npt.NDArray[Any]] = {"y_indptr": Y.indptr, "y_indices": Y.indices}
                setting["n_labels"] = Y.n_cols
                found = [vectors_of_labels({**self.shared(), **own}, setting, run.n_threads, progress)]
        else:
            units = _vector_units(Y, setting)
            found = complete(_VECTORS, units, self.shared(), run, is_kept=False)
        indptr = pointer_to(np.concatenate([part["counts"] for part in found]))
        indices, data, dense = (_end_to_end(found, name) for name in ("indices", "data", "dense"))
        vectors = CSR(indptr, indices, data, self.X.n_cols - self.X.width)
        return beside(vectors, dense) if self.X.width else vectors


def _vector_units(Y: CSR, setting: Mapping[str, Any]) -> list[Unit]:
    """Units that make the vectors of ranges of labels, of about equal numbers of label entries."""
    rows = np.repeat(np.arange(Y.n_rows, dtype=np.int32), np.diff(Y.indptr))
    by_label = np.argsort(Y.indices, kind="stable")
    ends = pointer_to(np.bincount(Y.indices, minlength=Y.n_cols))
    cuts = np.searchsorted(ends, np.linspace(0, Y.nnz, min(_VECTOR_UNITS, Y.n_cols) + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [Y.n_cols]])).tolist()
    units = []
    for first, last in pairwise(bounds):
        entries = np.sort(by_label[ends[first] : ends[last]])
        own: dict[str, npt.NDArray[Any]] = {
            "y_indptr": pointer_to(np.bincount(rows[entries], minlength=Y.n_rows)),
            "y_indices": Y.indices[entries] - np.int32(first),
        }
        sized = {**setting, "n_labels": last - first}
        units.append(Unit(f"vectors{first}", vectors_of_labels, own, sized, float(len(entries) + 1)))
    return units


def vectors_of_labels(
    arrays: Arrays, setting: Mapping[str, Any], n_threads: int, progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    """The vectors of some labels: the sums of their rows, of unit length."""
    indptr, indices, data, dense = _core.label_vectors(
        _rows_of(arrays, setting),
        label_matrix(arrays["y_indptr"], arrays["y_indices"], setting["n_labels"]),
        setting["most"], n_threads, progress, scale=arrays.get("x_scale"), vector_scale=arrays.get("x_vector_scale"),
    )  # fmt: skip
    return {"counts": np.diff(indptr), "indices": indices, "data": data, "dense": dense}


def _end_to_end(parts: Sequence[dict[str, npt.NDArray[Any]]], name: str) -> npt.NDArray[Any]:
    """An array of all parts; it is removed from them, so that no other is there twice."""
    pieces = [part.pop(name) for part in parts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _rows_of(arrays: Arrays, setting: Mapping[str, Any]) -> CSR:
    """The training rows among the arrays of a unit."""
    entries = arrays["x_indptr"], arrays["x_indices"], arrays["x_data"], setting["n_features"]
    if "x_vectors" in arrays:
        return Hybrid(*entries, arrays["x_vectors"])
    return MappedCSR(*entries, maps=(), limit=setting["resident"]) if setting["resident"] else CSR(*entries)


def factors(X: CSR, *, normalize: bool, vector_weight: float) -> tuple[F32 | None, F32 | None]:
    """The factors of the sparse parts of rows and of their vectors."""
    if isinstance(X, Hybrid):
        if normalize:
            return X.unit_factors(_core.unit_factors(X.sparse), vector_weight)
        return None, np.full(X.n_rows, vector_weight, np.float32)
    return (_core.unit_factors(X) if normalize else None), None


def train_whole(
    trees: Sequence[LabelTree], settings: Sequence[Mapping[str, Any]], shared: Arrays, Y: CSR, run: RunContext
) -> list[dict[str, npt.NDArray[Any]]]:
    """The weights of trees, each trained as a whole by this process."""
    trained = []
    with run.phase("train", len(trees) * MILLION) as progress:
        for number, (tree, setting) in enumerate(zip(trees, settings, strict=True)):
            data: dict[str, npt.NDArray[Any]] = {
                "child_ptr": tree.child_ptr, "label": tree.label, "y_indptr": Y.indptr, "y_indices": Y.indices,
            }  # fmt: skip
            part = None if progress is None else partial(_ahead, progress, number * MILLION)
            trained.append(train_part({**shared, **data}, {**setting, "n_labels": Y.n_cols}, run.n_threads, part))
    return trained


def _ahead(progress: Callable[[int], None], before: int, done: int) -> None:
    progress(before + done)


def train_part(
    arrays: Arrays, setting: Mapping[str, Any], n_threads: int, progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    """Train the nodes of a part or of a whole tree; the weights have the type in which they are stored."""
    X = _rows_of(arrays, setting)
    labels = setting["labels"]
    Y = label_matrix(arrays[labels + "y_indptr"], arrays[labels + "y_indices"], setting["n_labels"])
    tree = LabelTree(arrays["child_ptr"], arrays["label"])
    options = {
        **setting["solver"],
        **{name: setting[name] for name in ("threshold", "seed", "most_entries", "piece", "n_pieces")},
        "child_bytes": np.dtype(child_type(setting["widest"])).itemsize,
        # The weights of a piece are stored when all pieces of the node are there.
        "weight_bytes": 4 if setting["n_pieces"] > 1 else np.dtype(setting["weight_dtype"]).itemsize,
    }
    trained: dict[str, Any] = _core.train_tree(
        X, Y, tree, options, n_threads, progress,
        scale=arrays.get("x_scale"), vector_scale=arrays.get("x_vector_scale"),
        ids=arrays.get("ids"), rows=arrays.get("rows"), only=arrays.get("only"),
    )  # fmt: skip
    trained["weight_bytes"] = np.array(trained["weight_bytes"], np.int64)
    if not len(trained["row_start"]):  # dense, or no weight at all
        trained["weights"] = trained["weights"].astype(np.float32, copy=False)
    if setting["threshold"] >= 0 and setting["weight_dtype"] != "int8":  # the steps of int8 are known at the end
        trained["vector_weights"] = trained["vector_weights"].astype(setting["weight_dtype"])
    return trained if setting["n_pieces"] == 1 else _entries(trained, setting)


def _entries(trained: dict[str, Any], setting: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The weights of a piece of a node by entry, or by the children that it trained if they are dense."""
    if setting["threshold"] < 0:
        block = trained["weights"].reshape(len(trained["features"]), -1)
        own = np.flatnonzero(block.view(np.uint32).any(axis=0)).astype(np.int32)
        return {**trained, "child": own, "weights": block[:, own]}
    counts = np.diff(trained["row_start"], append=np.uint32(len(trained["weights"])))
    return {**trained, "entry_features": np.repeat(trained["features"], counts)}


def grown(grow: Callable[[int], LabelTree], number: int, run: RunContext) -> LabelTree:
    """The tree of this number, grown or from the checkpoint."""
    name, checkpoint = f"tree{number}.shape", run.checkpoint
    found = {} if checkpoint is None else checkpoint.read([name])
    if name in found:
        return LabelTree(**found[name])
    tree = grow(seed_of(number, run))
    if checkpoint is not None:
        checkpoint.write(name, {"child_ptr": tree.child_ptr, "label": tree.label})
    return tree


def seed_of(number: int, run: RunContext) -> int:
    """The seed of the tree of this number."""
    return run.seed + number * 2**32  # seeds are below 2^32: no two trees of any two seeds share one
