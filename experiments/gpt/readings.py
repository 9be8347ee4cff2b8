"""Readings of what the paper leaves open, one change at a time, judged on a part of the training rows.

python experiments/gpt/readings.py bibtex --trees 20 --seeds 1 [--rows 8000] [--only zero idf]
"""

import argparse

from sets import FOLDERS, HEAD, line, run, validation

FIRST = {"graph": "tail", "start": "rows", "idf": True, "epochs": 3, "l1": 1.0, "tolerance": 0.0}
READINGS = {
    "first reading": {},
    "10 epochs, l1 4 (printed)": {"epochs": 10, "l1": 4.0},
    "rows as they come": {"normalize": False},
    "features not weighted": {"idf": False},
    "start at zero": {"start": "zero"},
    "gaussian start": {"start": "gaussian"},
    "graph by idf": {"graph": "idf"},
    "l1 0.3": {"l1": 0.3},
    "l1 3": {"l1": 3.0},
    "label threshold 200": {"label_threshold": 200},
    "label threshold 1000": {"label_threshold": 1000},
    "rate 0.5": {"learning_rate": 0.5},
    "leaves of 5": {"max_leaf": 5},
    "30 neighbours, 10 negatives": {"n_neighbors": 30},
    "10 neighbours, 20 negatives": {"n_negatives": 20},
    "graph by idf, start at zero": {"graph": "idf", "start": "zero"},
    "the same, label threshold 200": {"graph": "idf", "start": "zero", "label_threshold": 200},
    "the same, tolerance 0.05": {"graph": "idf", "start": "zero", "tolerance": 0.05},
    "the same, 6 epochs": {"graph": "idf", "start": "zero", "epochs": 6},
    "the same, 5 neighbours, 5 negatives": {
        "graph": "idf",
        "start": "zero",
        "n_neighbors": 5,
        "n_negatives": 5,
    },
    "the same, 2 epochs, tolerance 0.02": {"graph": "idf", "start": "zero", "epochs": 2, "tolerance": 0.02},
    "the same, 1 epoch, l1 0.5": {"graph": "idf", "start": "zero", "epochs": 1, "l1": 0.5},
    "the same, features not weighted": {"graph": "idf", "start": "zero", "idf": False},
    "start at zero, 1 epoch, l1 0.5": {"start": "zero", "epochs": 1, "l1": 0.5},
}


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
    for title, changes in READINGS.items():
        if given.only and not any(part in title for part in given.only):
            continue
        parameters = {**FIRST, **changes, "n_trees": given.trees, "n_jobs": 1}
        found, model = run(train, judged, seeds=given.seeds, **parameters)
        print(line(title, found, model), flush=True)


if __name__ == "__main__":
    main()
