"""Linear models of LibMultiLabel: ``linear_pipeline.pickle``, which is read without being run.

A tree model holds all classifiers as columns of one matrix: those of a node's children are
``node_ptr[index] .. node_ptr[index + 1]``. A step's score is ``sigmoid(3 * margin)``, as in version 0.10; weights are
stored three times as large for it. Scores of several trees are averaged. A one-vs-rest model gives decision values;
here, scores are their sigmoids, in the same order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.importing.files import naming, read_bytes
from labelwood.importing.foreign_tree import ForeignTree, assemble, with_even_beams
from labelwood.importing.pickled_values import Made, array_of, matrix_of, read_values
from labelwood.methods.label_tree.base import LinearModel
from labelwood.methods.label_tree.linear_tree import LinearTree, OneVsRest
from labelwood.packed.label_tree import LOGISTIC

PIPELINE = "linear_pipeline.pickle"
_BEAM, _STEEPNESS = 10, 3.0  # the defaults of beam_width and prob_A of predict_values


def is_model(path: Path) -> bool:
    """True if the path is a pipeline of LibMultiLabel or its directory."""
    return path.name == PIPELINE or (path / PIPELINE).is_file()


def read(path: Path) -> LinearModel:
    """The model in a pipeline that ``save_pipeline`` wrote."""
    file = path / PIPELINE if path.is_dir() else path
    with naming(file):
        content = read_bytes(file)
        pipeline = read_values(content)
        model = pipeline.get("model") if isinstance(pipeline, dict) else None
        kind = model.name() if isinstance(model, Made) else ""
        if not isinstance(model, Made) or kind not in _READERS:
            raise FormatError(f"the model must be a TreeModel, an EnsembleTreeModel or a FlatModel; got {kind!r:.40}")
        return _READERS[kind](model, len(content))


def _read_trees(model: Made, most: int) -> LinearModel:
    members = model.fields()["tree_models"] if model.name() == "EnsembleTreeModel" else [model]
    if not isinstance(members, list) or not members or not all(isinstance(tree, Made) for tree in members):
        raise FormatError("the model has no trees")
    if len({id(tree) for tree in members}) < len(members):
        raise FormatError("the model has one tree twice")
    found = [_read_tree(tree, most) for tree in members]
    sizes = {n_features for n_features, _ in found}
    if len(sizes) != 1:
        raise FormatError("all trees must have the same features")
    estimator = LinearTree(
        n_trees=len(found), tree="kmeans", arity=100, max_depth=10, loss="logistic", C=1.0, tolerance=0.1,
        intercept=0.0, bias=1.0, normalize=False, weight_dtype="float32", beam_width=_BEAM, candidates="all",
    )  # fmt: skip
    return assemble(estimator, [tree for _, tree in found], sizes.pop(), LOGISTIC, source="LibMultiLabel")


def _read_tree(model: Made, most: int) -> tuple[int, ForeignTree]:
    own = model.fields()
    n_features, n_columns, feature, column, weight, constant = _read_flat(own["flat_model"], most)
    pointer = array_of(own["node_ptr"]).astype(np.int64)
    if (
        pointer.ndim != 1
        or len(pointer) < 2
        or pointer[0] != 0
        or pointer[-1] != n_columns
        or np.any(np.diff(pointer) < 0)
    ):
        raise FormatError("node_ptr does not fit the weights")
    parent, label, node_of = [-1], [-1], np.full(n_columns, -1)
    waiting: list[tuple[int, Any]] = [(0, own["root"])]
    seen: set[int] = set()
    while waiting:
        node, described = waiting.pop()
        fields = described.fields() if isinstance(described, Made) else {}
        children, index = fields.get("children"), fields.get("index")
        index = int(index) if isinstance(index, int) else _scalar(index)
        if not isinstance(children, list) or not 0 <= index < len(pointer) - 1 or index in seen:
            raise FormatError("a node of the tree is damaged")
        seen.add(index)
        labels = [-1] * len(children) if children else array_of(fields["label_map"]).astype(np.int64).tolist()
        first, last = (int(bound) for bound in pointer[index : index + 2])
        if last - first != len(labels) or not labels:
            raise FormatError("a node has other numbers of children and classifiers")
        kept = [not _is_empty(child) for child in children] or [True] * len(labels)
        numbers = len(parent) + np.cumsum(kept) - 1
        node_of[first:last] = np.where(kept, numbers, 0)
        waiting += [(int(number), child) for number, child, keep in zip(numbers, children, kept, strict=False) if keep]
        parent += [node] * sum(kept)
        label += [own for own, keep in zip(labels, kept, strict=True) if keep]
    if np.any(node_of < 0):
        raise FormatError("some classifiers belong to no node")
    bias = np.zeros(len(parent))
    bias[node_of] = _STEEPNESS * constant
    used = node_of[column] > 0
    weights = node_of[column[used]], feature[used], _STEEPNESS * weight[used]
    tree = ForeignTree(np.array(parent), np.array(label), *weights, np.where(np.arange(len(bias)) > 0, bias, 0.0))
    return n_features, with_even_beams(tree.check(n_features))


def _is_empty(described: Any) -> bool:
    """True of a leaf without labels: LibMultiLabel keeps clusters that k-means left empty. They are left out here."""
    fields = described.fields() if isinstance(described, Made) else {}
    return fields.get("children") == [] and "label_map" in fields and not len(array_of(fields["label_map"]))


def _scalar(value: Any) -> int:
    """A NumPy integer; -1 if it is none."""
    if isinstance(value, Made) and value.name() == "scalar" and isinstance(value.arguments[1], bytes):
        return int.from_bytes(value.arguments[1], "little", signed=True)
    return -1


def _read_flat(
    model: Any, most: int
) -> tuple[int, int, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Features, columns, feature, column and weight of every entry, and the constant score of every column.

    ``most`` are the columns that a file of this size can have.
    """
    own = model.fields() if isinstance(model, Made) else {}
    (n_rows, n_columns), feature, column, weight = matrix_of(own["weights"])
    if n_columns > most:
        raise FormatError(f"the weights claim {n_columns} columns in a file of {most} bytes")
    bias = own["bias"]
    if not isinstance(bias, int | float):
        raise FormatError("bias must be a number")
    has_bias = bias > 0
    n_features = n_rows - has_bias
    constant = np.zeros(n_columns)
    thresholds = own["thresholds"]
    constant += thresholds if isinstance(thresholds, int | float) else array_of(thresholds).reshape(-1)
    is_bias = feature == n_features
    np.add.at(constant, column[is_bias], weight[is_bias] * bias)
    rest = ~is_bias
    return n_features, n_columns, feature[rest], column[rest], weight[rest], constant


def _read_one_vs_rest(model: Made, most: int) -> LinearModel:
    n_features, n_columns, feature, column, weight, constant = _read_flat(model, most)
    parent = np.concatenate([[-1], np.zeros(n_columns, np.int64)])
    label = np.concatenate([[-1], np.arange(n_columns)])
    tree = ForeignTree(parent, label, column + 1, feature, weight, np.concatenate([[0.0], constant]))
    estimator = OneVsRest(loss="logistic", intercept=0.0, bias=1.0, normalize=False, weight_dtype="float32")
    return assemble(estimator, [tree], n_features, LOGISTIC, source="LibMultiLabel")


_READERS = {"TreeModel": _read_trees, "EnsembleTreeModel": _read_trees, "FlatModel": _read_one_vs_rest}
