"""A stream through Vowpal Wabbit's contextual memory tree, predicting each example before learning it; prints JSON.

    PYTHON experiments/oplt/few_shot_vw.py stream.vw --classes 10000

few_shot.py calls it when it is given --vw. Runs in an environment of its own, which has the package ``vowpalwabbit``
and not Labelwood. The options are one plausible setting, not tuned and not the authors' own.
"""

import argparse
import json
import time
from pathlib import Path

import vowpalwabbit


def main() -> None:
    """Run the stream through the tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stream")
    parser.add_argument("--classes", type=int, default=10_000)
    options = parser.parse_args()
    learner = vowpalwabbit.Workspace(
        f"--memory_tree {options.classes} --max_number_of_labels {options.classes + 1} --leaf_example_multiplier 4 "
        "--dream_repeats 3 --alpha 0.1 --learn_at_leaf -l 0.1 -b 22 --power_t 0.5 --quiet"
    )
    hits, start = [], time.process_time()
    for line in Path(options.stream).read_text().splitlines():
        label, _, features = line.partition(" | ")
        hits.append(int(learner.predict("| " + features)) == int(label))
        learner.learn(line)
    accuracy = 100 * sum(hits) / len(hits)
    print(json.dumps({"progressive accuracy": accuracy, "one pass, CPU s": time.process_time() - start}))


if __name__ == "__main__":
    main()
