"""Readings of what the paper leaves open, one change at a time, judged on a part of the training rows.

python experiments/gpt/readings.py bibtex --trees 20 --seeds 1 [--rows 8000] [--only zero idf]
python experiments/gpt/readings.py bibtex --trees 20 --folds 5   (what was tried around the defaults)

With --folds each of so many fifths of the training rows judges in turn, with its number as seed, and the changes
are changes of the defaults.
"""

import argparse

import numpy as np
from sets import FOLDERS, HEAD, fifth, line, run, validation

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
AROUND_DEFAULTS = {
    "defaults": {},
    "leaves of 20": {"max_leaf": 20},
    "l1 0.5": {"l1": 0.5},
    "l1 2": {"l1": 2.0},
    "rate 0.3": {"learning_rate": 0.3},
    "rate 0.03": {"learning_rate": 0.03},
    "rate 0.03, l1 0.5": {"learning_rate": 0.03, "l1": 0.5},
    "rate 0.03, 2 epochs": {"learning_rate": 0.03, "epochs": 2},
    "rate 0.01": {"learning_rate": 0.01},
    "20 negatives": {"n_negatives": 20},
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=FOLDERS)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folds", type=int, help="judge around the defaults, on so many fifths of the rows")
    parser.add_argument("--rows", type=int, help="use this many of the training rows")
    parser.add_argument("--only", nargs="+", help="readings whose names contain one of these")
    given = parser.parse_args()
    readings = READINGS if given.folds is None else AROUND_DEFAULTS
    print(HEAD)
    for title, changes in readings.items():
        if given.only and not any(part in title for part in given.only):
            continue
        parameters = {**changes, "n_trees": given.trees, "n_jobs": 1}
        if given.folds is None:
            train, judged = validation(given.data, rows=given.rows)
            found, model = run(train, judged, seeds=range(given.seeds), **{**FIRST, **parameters})
        else:
            runs = [run(*fifth(given.data, fold), seeds=[fold], **parameters) for fold in range(given.folds)]
            found, model = np.mean([found for found, _ in runs], axis=0), runs[-1][1]
        print(line(title, found, model), flush=True)


if __name__ == "__main__":
    main()
