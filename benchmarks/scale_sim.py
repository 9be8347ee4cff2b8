"""Simulate the training of one label tree on a cluster, from measured unit costs, and say what breaks first.

    python -m benchmarks.scale_sim eurlex57k
    python -m benchmarks.scale_sim eurlex57k --cores 32 --memory 128GB --network 3e9

The costs are those that benchmarks/scale_costs.py measures on the data set. The work units are those into which a
random tree of the shape is divided; a free core takes the largest unit that is left. The rows are copied to every node
over the network, in rounds in which each copy serves one more node. The workers make the label vectors; the process
that trains clusters them on its own threads, and the results come back to it. The network and the disk are taken to
keep their bandwidth.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_costs import BESIDE, SHAPES, Shape, measure
from labelwood import LinearTree
from labelwood.data import load
from labelwood.methods.label_tree import subtrees, tree_units
from labelwood.packed import tree_shape
from labelwood.resources.memory import parse_bytes

LARGE = Shape("100M rows, 3M labels", 100_000_000, 2_000_000, 3_000_000, 49.0, 36.0)
NODES = (1, 16, 64)
THREADS_SHARE = 0.8  # of a further thread that the process that trains gets to use


@dataclass(frozen=True)
class Cluster:
    """Nodes that are alike; bandwidths in bytes a second."""

    nodes: int
    cores: int
    memory: int
    network: float
    disk: float


def unit_seconds(shape: Shape, shares: list[tree_units.Share], ns_per_entry_and_block: float) -> list[float]:
    """Seconds of each unit: its share of the work, where every label of a row is in a node of its own."""
    row_of_label = shape.rows * shape.row_labels / shape.labels
    return [1e-9 * ns_per_entry_and_block * shape.row_entries * row_of_label * share.cost for share in shares]


def scheduled(seconds: list[float], workers: int) -> float:
    """The end of the last unit, if a free worker takes the largest unit that is left."""
    free = [0.0] * workers
    for unit in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + unit)
    return max(free)


def simulate(shape: Shape, cluster: Cluster, cost: dict[str, float]) -> dict[str, Any]:
    """Seconds of each stage, bytes that each machine holds, and what breaks or waits first."""
    tree = tree_shape.random_tree(shape.labels, arity=32, max_leaf=400, seed=0)
    n_parts = tree_units.parts_for(cluster.nodes * cluster.cores)
    division = subtrees.divide(tree, np.ones(shape.labels, np.int64), n_parts)
    shares = tree_units.shares_of(division, n_parts)
    units = unit_seconds(shape, shares, cost["ns_per_entry_and_block"])
    entries, results = shape.rows * shape.row_entries, cost["result_bytes_per_label"] * shape.labels
    rows_bytes = 8.0 * entries + 8.0 * shape.rows
    vectors = 1e-9 * cost["vector_ns_per_entry"] * entries * shape.row_labels
    vector_bytes = 8.0 * LinearTree().cluster_features * shape.labels
    alone = 1e-6 * cost["cluster_us_per_label_and_level"] * shape.labels * (tree.depth - 1)
    seconds = {
        "rows to the nodes": math.ceil(math.log2(cluster.nodes)) * rows_bytes / cluster.network,
        "label vectors": vectors / (cluster.nodes * cluster.cores),
        "label vectors to one process": (vector_bytes / cluster.network) if cluster.nodes > 1 else 0.0,
        "clustering": alone / (1 + THREADS_SHARE * (cluster.cores - 1)),
        "units": scheduled(units, cluster.nodes * cluster.cores),
        "results to one process": (results / cluster.network) if cluster.nodes > 1 else 0.0,
        "writing the model": results / cluster.disk,
    }
    upper = 64.0 * (shape.rows + shape.features) + 8.0 * entries
    labels = 12.0 * shape.rows * shape.row_labels
    held = {
        "a node: rows, and those of the upper part again": rows_bytes + upper,
        "the process that trains: rows, labels, and label vectors or model": rows_bytes
        + labels
        + max(1.5 * results, vector_bytes),
    }
    broken = [name for name, count in held.items() if count > cluster.memory]
    slowest = max(seconds, key=lambda name: seconds[name])
    if slowest == "units" and max(units) >= 0.99 * seconds["units"] and cluster.nodes > 1:
        largest = shares[int(np.argmax(units))]
        slowest = "units: all wait for the largest, " + ("of the upper part" if largest.part == 0 else "of a subtree")
    total = sum(seconds.values())
    return {
        "shape": shape.name,
        "nodes": cluster.nodes,
        "units": len(units),
        "hours": round(total / 3600, 2),
        "seconds": {name: round(value) for name, value in seconds.items()},
        "gigabytes": {name: round(count / 1e9, 1) for name, count in held.items()},
        "efficiency": round((sum(units) + vectors + alone) / (total * cluster.nodes * cluster.cores), 3),
        "does_not_fit": broken,
        "waits_first_for": slowest,
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a data set on which the costs are measured")
    parser.add_argument("--cores", type=int, default=16, help="of a node")
    parser.add_argument("--memory", default="64GB", help="of a node")
    parser.add_argument("--network", type=float, default=1.25e9, help="bytes a second; the default is 10 Gbit/s")
    parser.add_argument("--disk", type=float, default=1e9, help="bytes a second")
    options = parser.parse_args(argv)
    folder = Path(options.data) if Path(options.data).is_dir() else BESIDE / options.data
    cost = measure(load(folder / "train.txt.xz"), LinearTree(n_jobs=1))
    print(json.dumps({name: round(value, 4) for name, value in cost.items()}))
    memory = parse_bytes(options.memory, owner="scale_sim", name="--memory")
    for shape in (SHAPES[0], LARGE):
        for nodes in NODES:
            cluster = Cluster(nodes, options.cores, memory, options.network, options.disk)
            print(json.dumps(simulate(shape, cluster, cost)), flush=True)


if __name__ == "__main__":
    main()
