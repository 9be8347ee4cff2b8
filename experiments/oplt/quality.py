"""P@1/3/5, seconds, memory and sizes of OnlineTree on one data set, over several shuffles.

    python experiments/oplt/quality.py yso_finna_en --seeds 3 --set learning_rate=1.5
    python experiments/oplt/quality.py eurlex57k --seeds 3 --set warm_share=0.1
    python experiments/oplt/quality.py bibtex --seeds 3 --set epochs=3 learning_rate=0.5 policy=random

Prints a line of JSON per seed and one with means and standard deviations. CPU seconds are those of the process.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from datasets import load_pair

from labelwood import OnlineTree
from labelwood.metrics import precision_at_k


def parse(words):
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def on_disk(model, **options):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"), **options)
        return sum(file.stat().st_size for file in Path(folder, "model").iterdir())


def run(train, test, seed, parameters, sizes):
    start = time.process_time()
    model = OnlineTree(**{"n_jobs": 1, "random_state": seed, **parameters}).fit(train.X, train.Y)
    learned = time.process_time()
    top = model._topk_ids(test.X, 5)
    facts = {f"P@{k}": 100 * float(precision_at_k(test.Y, top, k)) for k in (1, 3, 5)}
    facts |= {"train_cpu": learned - start, "predict_cpu": time.process_time() - learned}
    described = model.describe()
    facts |= {"depth": described["depth"], "nodes": described["nodes"], "tree_MB": described["bytes"] / 2**20}
    facts["peak_MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if sizes:
        facts |= {
            "full_MB": on_disk(model) / 2**20,
            "inference_MB": on_disk(model, inference_only=True) / 2**20,
        }
    return facts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sizes", action="store_true", help="also save the model and report both sizes")
    options = parser.parse_args()
    train, test = load_pair(options.dataset)
    results = []
    for seed in range(options.seeds):
        results.append(run(train, test, seed, parse(options.set), options.sizes))
        print(
            json.dumps({"seed": seed, **{name: round(value, 2) for name, value in results[-1].items()}}),
            flush=True,
        )
    summary = {name: [result[name] for result in results] for name in results[0]}
    print(
        json.dumps({name: [round(float(f(v)), 2) for f in (np.mean, np.std)] for name, v in summary.items()})
    )


if __name__ == "__main__":
    main()
