"""Training the classifiers of a label tree as work units, and putting their results together.

A unit trains the nodes of a subtree; some nodes of the upper part; or, of a node with much work, a piece of its
children: siblings are trained in groups that do not depend on each other. So ``OneVsRest``, which is one node, is
divided by blocks of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.executors.work_unit import Unit, complete
from labelwood.methods.label_tree.subtrees import LANES, PARTS, Division, divide
from labelwood.methods.label_tree.training_rows import train_part
from labelwood.packed.tree_shape import LabelTree
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I32, Arrays

Result = dict[str, npt.NDArray[Any]]

_MOST_WORKERS = 1024
_PARTS_PER_WORKER = 4
_ENTRIES = ("entry_features", "child", "weights")
_STEPS = 127  # the largest int8


@dataclass(frozen=True)
class Share:
    """What one unit trains: inner nodes of a part, or a piece of the children of one."""

    part: int
    nodes: I32
    cost: float
    piece: int = 0
    n_pieces: int = 1


def shares_of(division: Division, n_parts: int) -> list[Share]:
    """The units of a division: subtrees, and nodes that are cut into pieces of about equal work."""
    wanted = sum(part.cost for part in division.parts) / n_parts
    found = []
    for number, part in enumerate(division.parts):
        inner, children = part.tree.inner, np.diff(part.tree.child_ptr)[part.tree.inner]
        together = np.ones(len(inner), bool)
        if number == 0 or len(inner) == 1:
            groups = -(-children // LANES)
            pieces = np.clip(np.ceil(part.costs / wanted), 1, groups).astype(np.int64)
            together = part.costs < wanted / 2
            for at in np.flatnonzero(~together).tolist():
                count, node = int(pieces[at]), inner[at : at + 1]
                found += [Share(number, node, float(part.costs[at]) / count, piece, count) for piece in range(count)]
        if together.any():
            found.append(Share(number, inner[together], float(part.costs[together].sum())))
    return found


def train_divided(
    trees: Sequence[LabelTree], settings: Sequence[Mapping[str, Any]], shared: Arrays, Y: CSR, run: RunContext
) -> list[Result]:
    """The weights of trees, whose parts are trained as work units."""
    counts, n_parts = np.bincount(Y.indices, minlength=Y.n_cols), _parts(run)
    divisions = [divide(tree, counts, n_parts) for tree in trees]
    shares = [shares_of(division, n_parts) for division in divisions]
    units: list[Unit] = []
    for number, (division, own, setting) in enumerate(zip(divisions, shares, settings, strict=True)):
        shared = {**shared, **upper_labels(division, Y, f"tree{number}")}
        units += units_of(division, own, Y, f"tree{number}", setting)
    results = complete("train", units, shared, run)
    joined = []
    for tree, division, own, setting in zip(trees, divisions, shares, settings, strict=True):
        of_tree, results = results[: len(own)], results[len(own) :]
        joined.append(join(tree, division, own, of_tree, setting))
    return joined


def _parts(run: RunContext) -> int:
    """Parts of a tree: a few for each worker. Those of a checkpoint remain, whatever the workers of later runs."""
    parts = parts_for(int(getattr(run.executor, "n_workers", lambda: 1)()))
    if run.checkpoint is None:
        return parts
    found = run.checkpoint.read(["parts"])
    if not found:
        run.checkpoint.write("parts", {"parts": np.array(parts)})
        return parts
    return int(found["parts"]["parts"])


def parts_for(n_workers: int) -> int:
    """Parts of a tree for so many workers."""
    return max(PARTS, _PARTS_PER_WORKER * min(n_workers, _MOST_WORKERS))


def upper_labels(division: Division, Y: CSR, name: str) -> Arrays:
    """The labels of all rows in the upper part of a tree, which all of its units share."""
    return {f"{name}.y_indptr": Y.indptr, f"{name}.y_indices": division.label_in_upper[Y.indices]}


def units_of(division: Division, shares: Sequence[Share], Y: CSR, name: str, setting: Mapping[str, Any]) -> list[Unit]:
    """The units that train the shares of a tree."""
    rows = np.repeat(np.arange(Y.n_rows, dtype=np.int32), np.diff(Y.indptr))
    entry_part = division.part_of[Y.indices]
    by_part = np.argsort(entry_part, kind="stable")
    bounds = np.searchsorted(entry_part[by_part], np.arange(1, len(division.parts) + 1))
    found = []
    for number, share in enumerate(shares):
        part = division.parts[share.part]
        own: Result = {"child_ptr": part.tree.child_ptr, "label": part.tree.label, "ids": part.ids, "only": share.nodes}
        if share.part > 0:
            entries = by_part[bounds[share.part - 1] : bounds[share.part]]
            member = rows[entries]
            first = np.flatnonzero(np.diff(member, prepend=-1))
            own |= {
                "rows": member[first],
                "y_indptr": np.append(first, len(member)).astype(np.int64),
                "y_indices": division.label_in_part[Y.indices[entries]],
            }
        n_labels = int((part.tree.label >= 0).sum())
        own_setting = {
            **setting, "n_labels": n_labels, "labels": f"{name}." if share.part == 0 else "",
            "piece": share.piece, "n_pieces": share.n_pieces,
        }  # fmt: skip
        found.append(Unit(f"{name}.part{number}", train_part, own, own_setting, share.cost))
    return found


def join(
    tree: LabelTree, division: Division, shares: Sequence[Share], results: Sequence[Result], setting: Mapping[str, Any]
) -> Result:
    """The arrays of the whole tree from those of its units, which are removed: only one array is there twice."""
    whole: list[tuple[Share, Result]] = []
    for first, share in enumerate(shares):
        if share.n_pieces == 1:
            whole.append((share, results[first]))
        elif share.piece == 0:
            n_children = int(np.diff(division.parts[share.part].tree.child_ptr)[share.nodes[0]])
            whole.append((share, _of_pieces(results[first : first + share.n_pieces], n_children, setting)))
    return _joined(tree, division, whole)


def _joined(tree: LabelTree, division: Division, whole: Sequence[tuple[Share, Result]]) -> Result:
    owner, place = np.zeros((2, tree.n_nodes), np.int64)
    bias = np.zeros(tree.n_nodes, np.float32)
    for number, (share, found) in enumerate(whole):
        part = division.parts[share.part]
        ids = part.ids[share.nodes]
        owner[ids], place[ids] = number, np.arange(len(ids))
        trained = np.isin(part.tree.parent, share.nodes)
        bias[part.ids[trained]] = found["bias"][trained]
    where = list(zip(owner[tree.inner].tolist(), place[tree.inner].tolist(), strict=True))
    results = [found for _, found in whole]
    moved = sum(int(found["weight_bytes"]) for found in results)
    joined: Result = {"bias": bias, "weight_bytes": np.array(moved)}
    for pointer, names in (("feature_ptr", ("features", "row_start")), ("weight_ptr", ("child", "weights"))):
        bounds = [result[pointer].tolist() for result in results]
        counts = [bounds[number][at + 1] - bounds[number][at] for number, at in where]
        joined[pointer] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        for name in names:
            sources = [result.pop(name) for result in results]
            pieces = [
                sources[number][bounds[number][at] : bounds[number][at + 1]]
                for number, at in where
                if len(sources[number])
            ]
            joined[name] = np.concatenate(pieces) if pieces else sources[0][:0]
            del sources, pieces
    if any(len(result["scale"]) for result in results):
        scales = [result["scale"].tolist() for result in results]
        joined["scale"] = np.array([scales[number][at] for number, at in where], np.float32)
    joined["vector_weights"] = np.concatenate(
        [
            _vector_block(division.parts[whole[number][0].part].tree, whole[number][0].nodes[at], whole[number][1])
            for number, at in where
        ]
    )
    return joined


def _vector_block(tree: LabelTree, node: int, found: Result) -> npt.NDArray[Any]:
    """The weights of an inner node for the dense columns of rows."""
    weights = found["vector_weights"]
    n_columns = len(weights) // (tree.n_nodes - 1)
    first, last = tree.child_ptr[node : node + 2].astype(np.int64) - 1
    return weights[first * n_columns : last * n_columns]


def _of_pieces(pieces: Sequence[Result], n_children: int, setting: Mapping[str, Any]) -> Result:
    """The result of a node from those of its pieces. A child has weights in one piece at most, and zeros in others."""
    found: Result = {name: _united([piece[name] for piece in pieces]) for name in ("bias", "vector_weights")}
    found["weight_bytes"] = np.array(sum(int(piece["weight_bytes"]) for piece in pieces))
    found["scale"] = np.empty(0, np.float32)
    if setting["threshold"] < 0:
        features = pieces[0]["features"]
        block = np.zeros((len(features), n_children), np.float32)
        for piece in pieces:
            block[:, piece.pop("child")] = piece.pop("weights")
        return found | _node(features, np.empty(0, np.uint32), np.empty(0, np.int32), block.ravel())
    features, child, weights = (np.concatenate([piece.pop(name) for piece in pieces]) for name in _ENTRIES)
    order = np.argsort(features.astype(np.int64) * n_children + child, kind="stable")
    features, child, weights = features[order], child[order], weights[order]
    if setting["weight_dtype"] == "int8":
        features, child, weights, found["scale"] = _in_steps(features, child, weights)
    starts = np.flatnonzero(np.diff(features, prepend=-1)).astype(np.uint32)
    stored = setting["weight_dtype"] if len(weights) else np.float32
    return found | _node(features[starts], starts, child, weights.astype(stored))


def _node(features: I32, row_start: npt.NDArray[np.uint32], child: npt.NDArray[Any], weights: Any) -> Result:
    feature_ptr, weight_ptr = np.array([0, len(features)]), np.array([0, len(weights)])
    return {
        "feature_ptr": feature_ptr, "features": features, "weight_ptr": weight_ptr, "row_start": row_start,
        "child": child, "weights": weights,
    }  # fmt: skip


def _united(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays of which each has what the others lack, as zeros, or the same."""
    bits = np.dtype(f"u{arrays[0].dtype.itemsize}")
    whole = arrays[0].view(bits).copy()
    for array in arrays[1:]:
        whole |= array.view(bits)
    return whole.view(arrays[0].dtype)


def _in_steps(features: I32, child: npt.NDArray[Any], weights: npt.NDArray[Any]) -> Any:
    """Entries with weights as multiples of a number, as the kernel stores int8; without those that become 0."""
    largest = np.abs(weights).max(initial=0)
    scale = np.maximum(largest, np.finfo(np.float32).tiny) / np.float32(_STEPS) if len(weights) else np.float32(1)
    steps = np.rint(weights / scale)
    kept = steps != 0
    return features[kept], child[kept], steps[kept], np.array([scale], np.float32)
