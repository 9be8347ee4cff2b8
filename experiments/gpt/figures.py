"""The figures of docs/methods/graph_forest.md: trained on the training part, judged on the test part.

python experiments/gpt/figures.py bibtex delicious --trees 50 --seeds 3 [--set l1=1 graph=idf]
"""

import argparse
import ast

from sets import FOLDERS, HEAD, line, load, run


def parameter(text):
    name, value = text.split("=")
    try:
        return name, ast.literal_eval(value)
    except ValueError:
        return name, value


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", choices=FOLDERS)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], type=parameter, help="parameters of GraphForest")
    given = parser.parse_args()
    print(HEAD)
    for name in given.data:
        train, test = load(name)
        found, model = run(
            train, test, seeds=range(given.seeds), n_trees=given.trees, n_jobs=given.jobs, **dict(given.set)
        )
        print(line(name, found, model), flush=True)


if __name__ == "__main__":
    main()
