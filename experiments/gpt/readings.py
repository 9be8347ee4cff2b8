"""Readings of what the paper leaves open, one change at a time, judged on a part of the training rows.

python experiments/gpt/readings.py bibtex --trees 20 --seeds 1 [--rows 8000] [--only zero idf]
"""

import argparse

from sets import FOLDERS, HEAD, line, run, validation

PRINTED = {"graph": "tail", "start": "rows", "idf": False, "tolerance": 0.0, "epochs": 10, "l1": 4.0}
READINGS = {
    "printed": PRINTED,
    "rows as they come": {**PRINTED, "normalize": False},
    "3 epochs, l1 4": {**PRINTED, "epochs": 3},
    "3 epochs, l1 1": {**PRINTED, "epochs": 3, "l1": 1.0},
    "features by idf": {**PRINTED, "epochs": 3, "l1": 1.0, "idf": True},
    "start at zero": {**PRINTED, "epochs": 3, "l1": 1.0, "idf": True, "start": "zero"},
    "gaussian start": {**PRINTED, "epochs": 3, "l1": 1.0, "idf": True, "start": "gaussian"},
    "graph by idf": {**PRINTED, "epochs": 3, "l1": 1.0, "idf": True, "graph": "idf"},
    "both": {**PRINTED, "epochs": 3, "l1": 1.0, "idf": True, "start": "zero", "graph": "idf"},
    "both, 2 epochs": {**PRINTED, "epochs": 2, "l1": 1.0, "idf": True, "start": "zero", "graph": "idf"},
    "both, threshold 200": {
        **PRINTED, "epochs": 3, "l1": 1.0, "idf": True, "start": "zero", "graph": "idf", "label_threshold": 200,
    },
    "defaults": {},
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=FOLDERS)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, help="use this many of the training rows")
    parser.add_argument("--only", nargs="+", help="readings whose names contain one of these")
    given = parser.parse_args()
    train, judged = validation(given.data, rows=given.rows)
    print(HEAD)
    for title, parameters in READINGS.items():
        if given.only and not any(part in title for part in given.only):
            continue
        found, model = run(train, judged, seeds=given.seeds, n_trees=given.trees, n_jobs=1, **parameters)
        print(line(title, found, model), flush=True)


if __name__ == "__main__":
    main()
