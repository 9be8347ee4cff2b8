"""Training with one thread and with two, and prediction row by row and in one batch, of CraftForest.

    python experiments/craftml/speed.py DATA_FOLDER

DATA_FOLDER holds train.txt.xz and test.txt.xz. Wall-clock seconds: run it on an idle machine.
"""

import argparse
import time
from pathlib import Path

import labelwood
from labelwood import data


def seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1000, help="rows predicted one by one")
    chosen = parser.parse_args()
    train, test = (data.load(chosen.folder / f"{part}.txt.xz") for part in ("train", "test"))
    X, Y, judged = train.X.to_scipy(), train.Y.to_scipy(), test.X.to_scipy().tocsr()
    model = labelwood.CraftForest(n_jobs=2)
    two = seconds(lambda: model.fit(X, Y))
    one = seconds(lambda: model.set_params(n_jobs=1).fit(X, Y))
    print(f"training: {one:.1f} s with one thread, {two:.1f} s with two, ratio {one / two:.2f}")
    batch = seconds(lambda: model.predict_topk(judged, 5))
    rows = [judged[i : i + 1] for i in range(min(chosen.rows, judged.shape[0]))]
    model.predict_topk(rows[0], 5)
    alone = seconds(lambda: [model.predict_topk(row, 5) for row in rows])
    print(f"prediction: {1e3 * batch / judged.shape[0]:.3f} ms a row in one batch, ", end="")
    print(f"{1e3 * alone / len(rows):.3f} ms a row alone")


if __name__ == "__main__":
    main()
