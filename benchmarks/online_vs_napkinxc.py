"""OnlineTree against napkinXC's OPLT: CPU seconds of training, peak memory, model bytes and precision.

    python benchmarks/online_vs_napkinxc.py --peer-python PEERS/napkinxc/bin/python bibtex delicious

Data sets: bibtex, delicious, yso_finna_en, eurlex57k. napkinXC (0.7.2) has no Python class for OPLT, but its
generic ``Model`` takes the arguments of its command line. Both use Best-Greedy, arity 2, alpha 0.75 and
AdaGrad, on the same rows in the same shuffled order, on one thread, each in its own process. Labelwood runs
first on even seeds and second on odd seeds. SETTINGS holds the epochs and the parameters of Labelwood, chosen
by experiments.oplt.choose on held-out training rows. napkinXC keeps its defaults (step size 1, 100 leaves).
Prints one JSON line per training.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = {
    "bibtex": {"epochs": 3, "rate": 0.5, "leaves": 200},
    "delicious": {"epochs": 3, "rate": 0.5, "leaves": 200},
    "yso_finna_en": {"epochs": 1, "rate": 1.5, "leaves": 100},
    "eurlex57k": {"epochs": 1, "rate": 1.0, "leaves": 200},
}

OURS = """
import json, resource, sys, time
import numpy as np
from labelwood import OnlineTree
from labelwood.data import load
from labelwood.sparse import CSR
train, folder, epochs, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
data = load(train)
model = OnlineTree(learning_rate=rate, max_leaf=int(sys.argv[6]), n_jobs=1)
start = time.process_time()
for _ in range(epochs):
    model.partial_fit(data.X, data.Y)
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
model.save(folder + "/full")
model.save(folder + "/small", inference_only=True)
test = load(sys.argv[5])
np.save(folder + "/top.npy", model.topk_ids(test.X, 5).labels)
print(json.dumps({"cpu": seconds, "peak": peak}))
"""

THEIRS = """
import json, resource, sys, time
import numpy as np
import scipy.sparse as sp
from napkinxc.models import Model
train, folder, epochs, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
def read(path):
    with np.load(path) as f:
        return [sp.csr_matrix((f[n + "_data"], f[n + "_indices"], f[n + "_indptr"]), f[n + "_shape"]) for n in "XY"]
X, Y = read(train)
Y = [Y.indices[Y.indptr[i]:Y.indptr[i + 1]].tolist() for i in range(Y.shape[0])]
model = Model(model="oplt", output=folder + "/small", tree_type="onlineBestScore", arity=2, max_leaves=100,
              online_tree_alpha=0.75, optimizer="adagrad", loss="log", eta=1.0, adagrad_eps=0.01,
              epochs=epochs, threads=1, seed=0, verbose=0, norm=True, bias=1.0)
start = time.process_time()
model.fit(X, Y)
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
del model
model = Model(model="oplt", output=folder + "/small", threads=1, verbose=0)
model.load()
top = model.predict(read(sys.argv[5])[0], top_k=5)
np.save(folder + "/top.npy", np.array([row + [-1] * (5 - len(row)) for row in top], np.int32))
print(json.dumps({"cpu": seconds, "peak": peak}))
"""


def shuffled(name, seed, folder):
    """Write the data set with shuffled training rows, in a format for each library; return the paths."""
    import numpy as np

    from labelwood.data import Dataset, load, save

    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    source = Path(os.environ.get("LABELWOOD_DATA", beside)) / name
    paths = {}
    for part in ("train", "test"):
        data = load(source / f"{part}.txt.xz")
        X, Y = data.X, data.Y
        if part == "train":
            order = np.random.default_rng(seed).permutation(X.n_rows)
            X, Y = X.take(order), Y.take(order)
        paths[part] = folder / f"{part}.npz"
        arrays = {}
        for letter, matrix in (("X", X), ("Y", Y)):
            arrays |= {
                f"{letter}_indptr": matrix.indptr, f"{letter}_indices": matrix.indices, f"{letter}_data": matrix.data,
                f"{letter}_shape": np.array([matrix.n_rows, matrix.n_cols]),
            }  # fmt: skip
        np.savez(paths[part], **arrays)
        own = folder / f"own-{part}.npz"
        save(own, Dataset(X, Y))
        paths["own-" + part] = own
    return paths


def measure(python, program, paths, prefix, setting, folder, rate):
    import numpy as np

    from labelwood.data import load
    from labelwood.metrics import precision_at_k
    from labelwood.sparse import TopK

    folder.mkdir()
    (folder / "small").mkdir(exist_ok=True)
    started = time.time()
    words = [
        str(paths[prefix + "train"]),
        str(folder),
        str(setting["epochs"]),
        str(rate),
        str(paths[prefix + "test"]),
        str(setting["leaves"]),
    ]
    done = subprocess.run([python, "-c", program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    facts = json.loads(done.stdout.strip().splitlines()[-1])
    labels = np.load(folder / "top.npy")
    truth = load(paths["own-test"]).Y
    top = TopK(labels, np.tile(np.arange(5, 0, -1, dtype=np.float32), (len(labels), 1)))
    facts["P"] = [round(100 * float(precision_at_k(truth, top, k)), 2) for k in (1, 3, 5)]
    facts["disk"] = sum(file.stat().st_size for file in (folder / "small").rglob("*") if file.is_file())
    facts["wall"] = time.time() - started
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", choices=SETTINGS)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    for name in options.datasets:
        setting = SETTINGS[name]
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as text:
                folder = Path(text)
                paths = shuffled(name, seed, folder)
                sides = {
                    "labelwood": (sys.executable, OURS, "own-", setting["rate"]),
                    "napkinxc": (options.peer_python, THEIRS, "", 1.0),
                }
                for side in sides if seed % 2 == 0 else reversed(sides):
                    python, program, prefix, rate = sides[side]
                    facts = measure(python, program, paths, prefix, setting, folder / side, rate)
                    print(json.dumps({"dataset": name, "seed": seed, "who": side, **facts}), flush=True)


if __name__ == "__main__":
    main()
