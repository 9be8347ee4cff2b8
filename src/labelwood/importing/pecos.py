"""XR-Linear models of PECOS: a folder per layer with ``param.json``, the weights ``W.npz`` and the clusters ``C.npz``.

Column j of a layer's W is the classifier of its node j; the last row is the bias if there is one. Row j of C has its
one entry in the column of the parent. A step's score is ``exp(-max(0, 1 - margin)^p)`` for the post-processor
``lp-hinge``, the sigmoid for ``sigmoid``; scores are multiplied along a path. Rows are used as they are given.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.importing.files import count, naming, read_matrix, read_object
from labelwood.importing.foreign_tree import ForeignTree, assemble
from labelwood.methods.label_tree.base import LinearModel
from labelwood.methods.label_tree.linear_tree import LinearTree
from labelwood.packed.label_tree import LOGISTIC

_RANKER, _PARAM = "ranker", "param.json"
_MOST_LAYERS = 64
_HINGE = re.compile(r"l([1-4])-hinge")


class _Layer(NamedTuple):
    feature: npt.NDArray[Any]
    node: npt.NDArray[Any]
    weight: npt.NDArray[Any]
    bias: npt.NDArray[Any]
    parent: npt.NDArray[Any]
    n_features: int
    beam: int
    link: int


def is_model(path: Path) -> bool:
    """True if the directory looks like an XR-Linear model, or the ranker within one."""
    return (path / _RANKER / _PARAM).is_file() or (path / "0.model" / _PARAM).is_file()


def read(path: Path) -> LinearModel:
    """The model in a directory that ``XLinearModel.save`` wrote."""
    ranker = path / _RANKER if (path / _RANKER).is_dir() else path
    param = read_object(ranker / _PARAM)
    if param.get("model") != "HierarchicalMLModel":
        raise FormatError(f"{ranker / _PARAM}: model must be HierarchicalMLModel; got {param.get('model')!r:.60}")
    depth = count(param, "depth", ranker / _PARAM, least=1)
    if depth > _MOST_LAYERS:
        raise FormatError(f"{ranker / _PARAM}: depth must be at most {_MOST_LAYERS}; got {depth}")
    layers = [_read_layer(ranker / f"{number}.model") for number in range(depth)]
    with naming(ranker):
        return _assembled(layers)


def _read_layer(folder: Path) -> _Layer:
    where = folder / _PARAM
    param = read_object(where)
    if param.get("is_mmap"):
        raise FormatError(f"{where}: the model is compiled for mmap; import the npz model that it was compiled from")
    asked = param.get("pred_kwargs")
    if not isinstance(asked, dict):
        raise FormatError(f"{where}: pred_kwargs must be an object; got {asked!r:.60}")
    bias = param.get("bias")
    if not isinstance(bias, int | float) or isinstance(bias, bool) or not -1e6 < bias < 1e6:
        raise FormatError(f"{where}: bias must be a number; got {bias!r:.60}")
    (n_rows, n_nodes), feature, node, weight = read_matrix(folder / "W.npz")
    (n_members, _), member, cluster, _ = read_matrix(folder / "C.npz")
    has_bias = bias > 0
    with naming(folder):
        apart = "every node of a layer must be in exactly one cluster"
        if n_members != n_nodes or len(member) != n_nodes:
            raise FormatError(apart)
        parent = np.full(n_members, -1)
        parent[member] = cluster
        if np.any(parent < 0):
            raise FormatError(apart)
        own = np.zeros(n_nodes)
        n_features = n_rows - has_bias
        is_bias = feature == n_features
        if np.any(np.bincount(node[is_bias], minlength=1) > 1):
            raise FormatError("a classifier has two biases")
        own[node[is_bias]] = weight[is_bias] * bias
        rest = ~is_bias
        beam, link = count(asked, "only_topk", where, least=1), _link(asked.get("post_processor"))
        return _Layer(feature[rest], node[rest], weight[rest], own, parent, n_features, beam, link)


def _link(processor: Any) -> int:
    found = _HINGE.fullmatch(processor) if isinstance(processor, str) else None
    if found:
        return int(found[1])
    if processor == "sigmoid":
        return LOGISTIC
    raise FormatError(f"post_processor must be l1-hinge to l4-hinge or sigmoid; got {processor!r:.60}")


def _assembled(layers: list[_Layer]) -> LinearModel:
    last = layers[-1]
    if any((layer.link, layer.n_features) != (last.link, last.n_features) for layer in layers):
        raise FormatError("all layers must have the same post_processor and the same features")
    beams = {layer.beam for layer in layers[:-1]} or {1}
    if len(beams) > 1:
        raise FormatError(f"all layers must have the same beam; got only_topk {sorted(beams)}")
    parent, label, bias, node = [np.array([-1])], [np.array([-1])], [np.zeros(1)], []
    above, end = 0, 1  # where the layer above begins, and this one
    for number, layer in enumerate(layers):
        size, n_above = len(layer.bias), end - above
        if layer.parent.max() >= n_above:
            raise FormatError(f"layer {number} has more clusters than the layer above has nodes")
        parent.append(layer.parent + above)
        label.append(np.arange(size) if number == len(layers) - 1 else np.full(size, -1))
        bias.append(layer.bias)
        node.append(layer.node + end)
        above, end = end, end + size
    tree = ForeignTree(
        np.concatenate(parent),
        np.concatenate(label),
        np.concatenate(node),
        np.concatenate([layer.feature for layer in layers]),
        np.concatenate([layer.weight for layer in layers]),
        np.concatenate(bias),
    )
    estimator = LinearTree(
        tree="balanced", arity=16, max_leaf=100, loss="logistic" if last.link == LOGISTIC else "squared_hinge", C=1.0,
        tolerance=0.1, max_passes=100, intercept=0.0, bias=1.0, normalize=False, score_power=last.link or 3,
        weight_dtype="float32", beam_width=beams.pop(),
    )  # fmt: skip
    return assemble(estimator, [tree], last.n_features, last.link, source="PECOS XR-Linear")
