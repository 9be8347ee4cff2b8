"""What each performance trick of the service brings: throughput and latency with the trick and without it.

python benchmarks/service/tricks.py ../shared/data/eurlex57k --work load

A trick is switched off by replacing a name of ``labelwood.serve`` in the process of the service, so the source has no
switches. Every round measures every case (a scenario and a trick that is off) between two runs with all tricks on.
Load, cores and models are those of ``load.py``; the half load is half of the saturation rate with all tricks on.

Each run is one line of WORK/tricks.jsonl. Runs that are there are not repeated, so the script can be interrupted. The
table has medians over the rounds. cpu_rate is the number of suggestions per second of CPU time of the thread that
answers; other work on the machine disturbs it least. A ratio is computed within a round, against the mean of the two
runs with all tricks on: above 1 the trick pays. "same" compares these two runs: a ratio within its spread is noise.
"""

import argparse
import json
import sys
from pathlib import Path

import load
import numpy as np

from labelwood import data
from labelwood.cli import main as labelwood_main
from labelwood.serve import processes
from labelwood.serve.http import app
from labelwood.serve.state import writer

ALL_ON, ALL_ON_AGAIN = "all on", "all on again"
FIGURES = {"rate": 1, "cpu_rate": 1, "full_p99": -1, "half_p50": -1, "half_p99": -1, "full_learned": 1}


def without_fast_path():
    """All requests go through FastAPI."""
    app.FastPath = lambda app, service, refuse: app


def without_stand_back():
    """The writer and the snapshot have the priority of the thread that answers."""
    writer.stand_back = lambda: None


def without_switch_interval():
    """Threads release the interpreter at Python's default interval."""
    processes._SWITCH_SECONDS = sys.getswitchinterval()


def without_group_commit():
    """Every record is flushed to disk on its own."""
    writer._GROUP = 1


TRICKS = {
    "fast path": without_fast_path,
    "stand back": without_stand_back,
    "switch interval": without_switch_interval,
    "group commit": without_group_commit,
}
WRITING = ["stand back", "switch interval", "group commit"]
# name: model, whether it learns, seconds between snapshots, tricks that can matter
SCENARIOS = {
    "linear-tree": ("linear-tree", False, 3600, ["fast path"]),
    "online-tree": ("online-tree", False, 3600, ["fast path"]),
    "online-tree learning": ("online-tree", True, 3600, ["fast path", *WRITING]),
    "online-tree learning, snapshots": ("online-tree", True, 1, WRITING),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--learn", type=int, default=500)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    options = parser.parse_args()
    options.workers = 1
    results = options.work / "tricks.jsonl"
    measure_all(results, options)
    report([json.loads(line) for line in results.read_text().splitlines()])


def measure_all(results, options):
    test = data.load(load.find(options.data, "test"))
    asked = [load.request("/suggest", {"features": row, "k": 5}) for row in load.features(test.X, 2000)]
    taught = load.teaching(test, options.batch)
    lines = results.read_text().splitlines() if results.exists() else []
    done = {(one["round"], one["scenario"], one["off"]): one for one in map(json.loads, lines)}
    for number in range(options.rounds):
        for name in options.scenario or SCENARIOS:
            method, learns, options.snapshot_seconds, tricks = SCENARIOS[name]
            model = load.train(method, options)
            rate = done.get((number, name, ALL_ON), {}).get("rate")
            for off in [ALL_ON, *tricks, ALL_ON_AGAIN]:
                if (number, name, off) in done:
                    continue
                program = [sys.executable, __file__, "--without", off]
                found = load.measure(
                    model, asked, taught if learns else None, options, known_rate=rate, program=program
                )
                rate = rate or found["rate"]
                line = json.dumps({"round": number, "scenario": name, "off": off, **found})
                print(line, flush=True)
                with results.open("a") as file:
                    file.write(line + "\n")


def report(runs):
    """Print a markdown table for each scenario."""
    for name, (_, learns, _, tricks) in SCENARIOS.items():
        rounds = {}
        for one in runs:
            if one["scenario"] == name:
                rounds.setdefault(one["round"], {})[one["off"]] = one
        complete = [one for one in rounds.values() if {ALL_ON, ALL_ON_AGAIN, *tricks} <= one.keys()]
        if not complete:
            continue
        shown = [figure for figure in FIGURES if learns or "learned" not in figure]
        print(f"\n### {name} ({len(complete)} rounds)\n")
        print("| trick | " + " | ".join(f"{one} with / without | ratio" for one in shown) + " |")
        print("|---" * (1 + 2 * len(shown)) + "|")
        print(row("same", complete, shown, ALL_ON_AGAIN, [ALL_ON]))
        for trick in tricks:
            print(row(trick, complete, shown, trick, [ALL_ON, ALL_ON_AGAIN]))


def row(title, rounds, figures, off, on):
    cells = [title]
    for figure in figures:
        with_ = np.array([np.mean([one[case][figure] for case in on]) for one in rounds])
        without = np.array([one[off][figure] for one in rounds])
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing was learned
            ratios = (with_ / without) ** FIGURES[figure]
        cells.append(f"{np.median(with_):.4g} / {np.median(without):.4g}")
        cells.append(f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--without"]:
        TRICKS.get(sys.argv[2], lambda: None)()
        sys.exit(labelwood_main(sys.argv[3:]))
    main()
