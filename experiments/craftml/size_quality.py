"""Size against quality of a CraftForest: entries kept of a centroid, labels kept in a leaf, number format.

    python experiments/craftml/size_quality.py DATA_FOLDER --out curve --centroids 0.5:20 0.9:50

DATA_FOLDER holds train.txt.xz and test.txt.xz. Writes curve.json and curve.md. Every cut of the centroids,
``centroid_share:centroid_size``, is trained anew (training routes by the cut centroids); leaves and number
formats are cut from the trained model.
"""

import argparse
import json
import time
from pathlib import Path

import labelwood
from labelwood import data, metrics


def cut(text: str) -> tuple[float, int]:
    share, size = text.split(":")
    return float(share), int(size)


def measure(model, test) -> dict[str, float]:
    start = time.process_time()
    top = model._topk_ids(test.X, 5)
    seconds = time.process_time() - start
    quality = metrics.evaluate(test.Y, top, ks=(1, 3, 5))
    return {
        "MB": round(model.forest_.nbytes / 1e6, 1),
        "ms_per_row": round(1e3 * seconds / test.X.n_rows, 4),
        **{name: round(100 * quality[name], 2) for name in ("P@1", "P@3", "P@5")},
    }


def rows_of(train, test, centroids, n_trees, n_jobs, seed):
    for share, size in centroids:
        model = labelwood.CraftForest(
            n_trees=n_trees, centroid_share=share, centroid_size=size, weight_dtype="float32", n_jobs=n_jobs,
            random_state=seed,
        )  # fmt: skip
        start = time.process_time()
        model.fit(train.X, train.Y.to_scipy())
        seconds = round(time.process_time() - start, 1)
        base = {"centroid_share": share, "centroid_size": size, "train_cpu_s": seconds}
        yield {**base, "leaf_size": None, "dtype": "float32", **measure(model, test)}
        model.shrink(dtype="float16")
        yield {**base, "leaf_size": None, "dtype": "float16", **measure(model, test)}
        for leaf_size in (20, 10, 5):
            model.shrink(leaf_size=leaf_size)
            yield {**base, "leaf_size": leaf_size, "dtype": "float16", **measure(model, test)}


def markdown(rows) -> str:
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += [
        "| " + " | ".join("all" if row[h] is None else str(row[h]) for h in head) + " |" for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("size_quality"))
    parser.add_argument("--centroids", type=cut, nargs="+", default=[(0.5, 20), (0.7, 30), (0.9, 50)])
    parser.add_argument("--n-trees", type=int, default=50)
    parser.add_argument("--n-jobs", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    train, test = (data.load(chosen.folder / f"{part}.txt.xz") for part in ("train", "test"))
    rows = []
    for row in rows_of(train, test, chosen.centroids, chosen.n_trees, chosen.n_jobs, chosen.seed):
        rows.append(row)
        chosen.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
        chosen.out.with_suffix(".md").write_text(markdown(rows))
        print(row, flush=True)


if __name__ == "__main__":
    main()
