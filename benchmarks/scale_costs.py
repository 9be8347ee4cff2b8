"""Measure the cost of each part of training a label tree, and project it to larger data sets.

    python benchmarks/scale_costs.py eurlex57k

Trains LinearTree with its defaults on one thread, divided into work units as for a cluster, and divides the
CPU seconds by the amount of work. Then counts the same work for data of the size of Wiki-500K and Amazon-3M and
prints bytes, work units and hours. The count is an upper bound: it assumes that no two labels of a row share
a node.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelwood import LinearTree
from labelwood.data import load
from labelwood.executors.work_unit import perform
from labelwood.methods.label_tree import subtrees, tree_units
from labelwood.methods.label_tree.training_rows import TrainingRows
from labelwood.packed import tree_shape
from labelwood.resources import label_tree
from labelwood.run_context import RunContext

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
WORKERS = (1, 16, 64)


@dataclass(frozen=True)
class Shape:
    """The size of a data set: rows, features and labels as the XMC repository lists them.

    The entries and labels per row are assumptions.
    """

    name: str
    rows: int
    features: int
    labels: int
    row_entries: float
    row_labels: float


SHAPES = (
    Shape("Wiki-500K", 1_779_881, 2_381_304, 501_070, 385.0, 4.75),
    Shape("Amazon-3M", 1_717_899, 337_067, 2_812_281, 49.0, 36.0),
)


def entries_by_blocks(plan: label_tree.Plan) -> float:
    """Entries of the nodes' rows times blocks of 16 children."""
    return float((plan.entries * -(-plan.children // 16)).sum())


def measure(dataset, model: LinearTree) -> dict[str, float]:
    X, Y, run = dataset.X, dataset.Y, RunContext()
    rows = TrainingRows.of(X, run, normalize=True)
    started = time.process_time()
    rows.label_vectors(Y, model.cluster_features or 0, run)
    vector_seconds = time.process_time() - started
    started = time.process_time()
    tree = model._grower(rows, Y, run)(0)
    cluster_seconds = time.process_time() - started - vector_seconds
    plan = rows.count(Y, tree, RunContext())
    division = subtrees.divide(tree, np.bincount(Y.indices, minlength=Y.n_cols))
    shares = tree_units.shares_of(division, subtrees.PARTS)
    units = tree_units.units_of(division, shares, Y, "tree0", model._setting(rows, tree, 0, run))
    shared, seconds, result_bytes = {**rows.shared(), **tree_units.upper_labels(division, Y, "tree0")}, [], 0
    for unit in units:
        started = time.process_time()
        found = perform(unit, shared, 1, None)
        seconds.append(time.process_time() - started)
        result_bytes += sum(array.nbytes for array in found.values())
    entries_of_labels = float((np.diff(X.indptr)[np.repeat(np.arange(X.n_rows), np.diff(Y.indptr))]).sum())
    return {
        "units": len(units),
        "train_seconds": sum(seconds),
        "largest_unit_share": max(seconds) / sum(seconds),
        "upper_part_share": sum(s for s, share in zip(seconds, shares, strict=True) if share.part == 0) / sum(seconds),
        "ns_per_entry_and_block": 1e9 * sum(seconds) / entries_by_blocks(plan),
        "vector_ns_per_entry": 1e9 * vector_seconds / entries_of_labels,
        "cluster_us_per_label_and_level": 1e6 * cluster_seconds / (Y.n_cols * (tree.depth - 1)),
        "result_bytes_per_label": result_bytes / Y.n_cols,
    }


def project(shape: Shape, cost: dict[str, float]) -> dict[str, object]:
    """Project the costs to ``shape``, on a random tree of LinearTree's default arity and leaf size."""
    tree = tree_shape.random_tree(shape.labels, arity=32, max_leaf=400, seed=0)
    blocks = 0.0
    for level in range(len(tree.level_ptr) - 2):
        nodes = np.arange(tree.level_ptr[level], tree.level_ptr[level + 1])
        inner = nodes[tree.label[nodes] < 0]
        children = np.diff(tree.child_ptr)[inner]
        visits = min(shape.row_labels, len(inner))
        blocks += visits * float(np.mean(-(-children // 16)))
    entries = shape.rows * shape.row_entries
    # The training process clusters and sums label vectors on its own threads; workers do the rest.
    alone = 1e-9 * cost["vector_ns_per_entry"] * entries * shape.row_labels
    alone += 1e-6 * cost["cluster_us_per_label_and_level"] * shape.labels * (tree.depth - 1)
    work = 1e-9 * cost["ns_per_entry_and_block"] * entries * blocks
    division = subtrees.divide(tree, np.ones(shape.labels, np.int64))
    return {
        "shape": shape.name,
        "rows_bytes": int(8 * entries + 8 * shape.rows),
        "labels_bytes": int(12 * shape.rows * shape.row_labels),
        "depth": tree.depth,
        "units": len(tree_units.shares_of(division, subtrees.PARTS)),
        "blocks_a_row": round(blocks, 1),
        "upper_solver_bytes": int(64 * (shape.rows + shape.features) + 8 * entries),
        "result_bytes": int(cost["result_bytes_per_label"] * shape.labels),
        "alone_hours": round(alone / 3600, 2),
        "work_hours": round(work / 3600, 2),
        "hours": {n: round((alone + max(work / n, cost["largest_unit_share"] * work)) / 3600, 2) for n in WORKERS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    options = parser.parse_args()
    folder = Path(options.data)
    if not folder.is_dir():
        folder = Path(os.environ.get("LABELWOOD_DATA", BESIDE)) / options.data
    cost = measure(load(folder / "train.txt.xz"), LinearTree(n_jobs=1))
    print(json.dumps({name: round(value, 4) for name, value in cost.items()}))
    for shape in SHAPES:
        print(json.dumps(project(shape, cost)))


if __name__ == "__main__":
    main()
