"""Time to load a text file: Labelwood against scikit-learn's load_svmlight_file on the same rows.

    python benchmarks/kernels/parse.py [FILE] [--repeats 5]

FILE is in XMC format; the default is the training set of eurlex57k, from LABELWOOD_DATA or ../shared/data. It
is unpacked into a temporary directory without its header, so that both readers get the same bytes. The
readers take turns. Prints the best and the median time of each; the ratio is of the best times.
"""

import argparse
import lzma
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from labelwood.data import load

ROOT = Path(__file__).resolve().parents[2]


def unpack(source, target):
    opener = lzma.open if source.suffix == ".xz" else open
    with opener(source, "rb") as packed:
        first = packed.readline()
        target.write_bytes((b"" if len(first.split()) == 3 else first) + packed.read())


def main():
    default = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data")) / "eurlex57k" / "train.txt.xz"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=default)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        unpack(options.file, path)
        readers = {
            "scikit-learn": lambda: load_svmlight_file(str(path), multilabel=True, zero_based=True, dtype=np.float32),
            "labelwood, 1 thread": lambda: load(path, zero_based=True, n_threads=1),
            "labelwood, 2 threads": lambda: load(path, zero_based=True, n_threads=2),
        }
        seconds = {name: [] for name in readers}
        for _ in range(options.repeats):
            for name, read in readers.items():
                start = time.perf_counter()
                loaded = read()
                seconds[name].append(time.perf_counter() - start)
                if name == "scikit-learn":
                    expected = loaded[0]
                else:
                    assert np.array_equal(loaded.X.indices, expected.indices)
                    assert np.array_equal(loaded.X.data, expected.data)
        megabytes = path.stat().st_size / 1e6
        print(f"{options.file}: {megabytes:.0f} MB, {expected.shape[0]} rows, {expected.nnz} values")
        for name, runs in seconds.items():
            ratio = min(seconds["scikit-learn"]) / min(runs)
            print(f"{name:<22} best {min(runs):6.3f} s  median {np.median(runs):6.3f} s  {ratio:5.1f}x")


if __name__ == "__main__":
    main()
