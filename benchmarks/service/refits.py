"""What refits of a LivingTree cost those who ask for suggestions: latency with and without, interleaved.

python benchmarks/service/refits.py ../shared/data/eurlex57k --work load

Trains a LivingTree once (kept below --work) and serves it on both cores, in turn with refits one after the other
(--refit-seconds 0.1) and without any (--no-refits), --rounds times. ``load.py`` says how a service is measured; the
second phase sends half of the saturation rate of the first round without refits, for --seconds. Prints a line of JSON
for each run, and the medians. A round counts only if a refit ended in its second phase; the last line says how many.
"""

import argparse
import json
import statistics
from pathlib import Path

import load

from labelwood import LivingTree, data

MODES = {"without": ["--no-refits"], "with": ["--refit-seconds", "0.1"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0, help="of the second phase")
    parser.add_argument("--full-seconds", type=float, default=4.0, help="of the first phase, at full rate")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--learn", type=int, default=200)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--rows", type=int, default=4000, help="training rows of the model")
    options = parser.parse_args()
    options.workers, options.snapshot_seconds, options.both_cores = 1, 3600, True
    test = data.load(load.find(options.data, "test"))
    asked = [load.request("/suggest", {"features": row, "k": 5}) for row in load.features(test.X, 2000)]
    taught = load.teaching(test, options.batch)
    model, rate, runs = train(options), None, []
    for number in range(options.rounds):
        for name, options.flags in MODES.items():
            found = load.measure(model, asked, taught, options, known_rate=rate)
            rate = rate or found["rate"]
            refits = found.pop("metrics")
            shown = ("rate", "full_p99", "full_learned", "half_p50", "half_p99", "half_learned")
            one = {"round": number, "refits": name, **{key: round(found[key], 3) for key in shown}, **refits}
            runs.append(one)
            print(json.dumps(one), flush=True)
    valid = {one["round"] for one in runs if one["refits"] == "with" and one["refits_taken"] + one["refits_not_taken"]}
    counted = [one for one in runs if one["round"] in valid]
    for key in ("half_p50", "half_p99", "half_learned", "rate") if valid else ():
        medians = {name: statistics.median([one[key] for one in counted if one["refits"] == name]) for name in MODES}
        print(f"{key}: {medians['with']:.2f} with refits, {medians['without']:.2f} without", flush=True)
    print(f"{len(valid)} of {options.rounds} rounds count: a refit ended in their second phase", flush=True)


def train(options):
    path = options.work / "living-tree"
    if not (path / "manifest.json").exists():
        rows = data.load(load.find(options.data, "train"))
        count = min(options.rows, rows.n_rows)
        model = LivingTree(n_jobs=1, online={"max_leaf": 200})
        model.fit(rows.X.rows(0, count), rows.Y.rows(0, count), label_names=rows.label_names).save(path)
    return path


if __name__ == "__main__":
    main()
