"""Models of omikuji: ``settings.json`` and one CBOR file per tree.

A tree is nested maps as Rust's serde writes them: ``{"Branch": {"weights": ..., "children": [...]}}`` and ``{"Leaf":
{"weights": ..., "labels": [...]}}``. Weights are features by children, the last feature is the bias. A step costs
``max(0, 1 - margin)^2``, or the logistic loss. Rows have unit length. A tree proposes the ten best labels of each of
the ten best leaves; scores are averaged over trees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.importing.files import count, naming, read_bytes, read_object, whole
from labelwood.importing.foreign_tree import ForeignTree, assemble, with_even_beams
from labelwood.methods.label_tree.base import LinearModel
from labelwood.methods.label_tree.linear_tree import LinearTree
from labelwood.packed.label_tree import LOGISTIC

SETTINGS = "settings.json"
_LOSSES: dict[str, tuple[Literal["squared_hinge", "logistic"], int]] = {
    "Hinge": ("squared_hinge", 2),
    "Log": ("logistic", LOGISTIC),
}
_NUMBER, _TEXT, _ARRAY, _MAP = range(4)
_BEAM = 10  # omikuji's default; the files do not name another


def is_model(path: Path) -> bool:
    """True if the directory looks like a model of omikuji."""
    return (path / SETTINGS).is_file() and any(path.glob("tree*.cbor"))


def read(path: Path) -> LinearModel:
    """The model in a directory that omikuji saved."""
    settings = read_object(path / SETTINGS)
    n_features = count(settings, "n_features", path / SETTINGS, least=1)
    given = settings.get("classifier_loss_type")
    if not isinstance(given, str) or given not in _LOSSES:
        raise FormatError(f"{path / SETTINGS}: classifier_loss_type must be Hinge or Log; got {given!r:.60}")
    loss, link = _LOSSES[given]
    files = sorted(path.glob("tree*.cbor"), key=lambda file: (len(file.name), file.name))
    trees = [_read_tree(file, n_features) for file in files]
    with naming(path):
        estimator = LinearTree(
            n_trees=len(trees), arity=2, max_leaf=100, loss=loss, C=1.0, tolerance=0.1, intercept=0.0, bias=1.0,
            score_power=2, weight_dtype="float32", beam_width=_BEAM, candidates="beam",
        )  # fmt: skip
        return assemble(estimator, trees, n_features, link, source="omikuji")


def _read_tree(path: Path, n_features: int) -> ForeignTree:
    content = np.frombuffer(read_bytes(path), np.uint8)
    kinds, values, bad = _core.cbor_tokens(content)
    if bad >= 0:
        raise FormatError(f"{path}: not a tree of omikuji; the item at byte {bad} is damaged")
    with naming(path):
        return with_even_beams(_Tree(content, kinds, values, n_features).read().check(n_features))


class _Weights(NamedTuple):
    feature: npt.NDArray[Any]
    child: npt.NDArray[Any]
    value: npt.NDArray[Any]
    n_children: int


class _Tree:
    """The tokens of one file, read once from front to back."""

    def __init__(self, content: npt.NDArray[Any], kinds: npt.NDArray[Any], values: npt.NDArray[Any], n_features: int):
        self._content, self._kinds, self._values = content, kinds, values
        self._at, self._n_features = 0, n_features
        self._parent, self._label = [-1], [-1]
        self._weights: list[tuple[int, _Weights]] = []  # with the first child of the node

    def read(self) -> ForeignTree:
        """The whole tree. A branch's children follow it one after the other, so no recursion is needed."""
        waiting = [0]  # nodes whose own map comes next, last first
        while waiting:
            node = waiting.pop()
            self._expect(_MAP, 1)
            kind = self._key("Branch", "Leaf")
            self._expect(_MAP, 2)
            self._key("weights")
            weights = self._read_weights()
            n_children = weights.n_children
            self._key("children" if kind == "Branch" else "labels")
            if kind == "Branch":
                self._expect(_ARRAY, n_children)
                labels = [-1] * n_children
            else:
                labels = whole(self._numbers(), "labels").tolist()
                if len(labels) != n_children:
                    raise FormatError(f"a leaf has {len(labels)} labels and {n_children} classifiers")
            if not labels:
                raise FormatError("a node of the tree has no children")
            first = len(self._parent)
            self._parent += [node] * n_children
            self._label += labels
            self._weights.append((first, weights))
            if kind == "Branch":
                waiting += reversed(range(first, first + n_children))
        if self._at != len(self._kinds):
            raise FormatError("the file goes on behind its tree")
        return self._whole()

    def _whole(self) -> ForeignTree:
        node = np.concatenate([first + weights.child for first, weights in self._weights])
        feature = np.concatenate([weights.feature for _, weights in self._weights])
        weight = np.concatenate([weights.value for _, weights in self._weights]).astype(np.float32)
        is_bias = feature == self._n_features
        bias = np.zeros(len(self._parent), np.float32)
        bias[node[is_bias]] = weight[is_bias]
        rest = ~is_bias
        return ForeignTree(np.array(self._parent), np.array(self._label), node[rest], feature[rest], weight[rest], bias)

    def _read_weights(self) -> _Weights:
        self._expect(_MAP, 1)
        return self._sparse() if self._key("Sparse", "Dense") == "Sparse" else self._dense()

    def _sparse(self) -> _Weights:
        self._expect(_MAP, 6)
        rows, columns = (int(whole(self._number(name), name)[0]) for name in ("outer_dim", "inner_dim"))
        parts = []
        for name in ("indptr", "outer_inds", "inner_inds", "data"):
            self._key(name)
            parts.append(self._numbers())
        pointer, outer, inner = (whole(part, "indices") for part in parts[:3])
        data = parts[3]
        fits = len(pointer) == len(outer) + 1 and pointer[0] == 0 and pointer[-1] == len(inner) == len(data)
        if not fits or np.any(np.diff(pointer) < 0) or rows != self._n_features + 1:
            raise FormatError("the weights of a node do not fit its shape")
        if len(inner) and (inner.max() >= columns or outer.max() >= rows):
            raise FormatError("a weight of a node lies outside its matrix")
        return _Weights(np.repeat(outer, np.diff(pointer)), inner, data, columns)

    def _dense(self) -> _Weights:
        self._expect(_MAP, 3)
        self._number("v")
        self._key("dim")
        dim = whole(self._numbers(), "dim")
        self._key("data")
        data = self._numbers()
        if len(dim) != 2 or dim[0] != self._n_features + 1 or dim[0] * dim[1] != len(data):
            raise FormatError("the weights of a node do not fit its shape")
        feature, child = np.divmod(np.flatnonzero(data), dim[1])
        return _Weights(feature, child, data[data != 0], int(dim[1]))

    def _next(self, kind: int) -> float:
        if self._at >= len(self._kinds):
            raise FormatError("the file ends within its tree")
        if self._kinds[self._at] != kind:
            raise FormatError("the file is not built like a tree of omikuji")
        self._at += 1
        return float(self._values[self._at - 1])

    def _expect(self, kind: int, size: int) -> None:
        if self._next(kind) != size:
            raise FormatError("the file is not built like a tree of omikuji")

    def _key(self, *names: str) -> str:
        offset, length = divmod(int(self._next(_TEXT)), 256)
        found = self._content[offset : offset + length].tobytes()
        for name in names:
            if found == name.encode():
                return name
        raise FormatError(f"the file must have {' or '.join(names)} here; got {found[:20]!r}")

    def _number(self, name: str) -> npt.NDArray[Any]:
        self._key(name)
        return np.array([self._next(_NUMBER)])

    def _numbers(self) -> npt.NDArray[Any]:
        """The numbers of an array."""
        size = int(self._next(_ARRAY))
        first, self._at = self._at, self._at + size
        if self._at > len(self._kinds):
            raise FormatError("the file ends within its tree")
        if self._kinds[first : self._at].any():  # a kind other than 0, a number
            raise FormatError("an array of the tree must hold numbers")
        found: npt.NDArray[Any] = self._values[first : self._at]
        return found
