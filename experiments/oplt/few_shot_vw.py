"""A stream through Vowpal Wabbit's contextual memory tree, predicting each example before learning it; prints JSON.

    PYTHON experiments/oplt/few_shot_vw.py stream.vw test.vw --classes 10000 --like wikipara

few_shot.py calls it when it is given --vw. It runs in an environment of its own, which has the package ``vowpalwabbit``
and not Labelwood. The settings are those that the authors publish for ALOI and for WikiPara in demo/memory_tree of
Vowpal Wabbit, but for the bits of the table: theirs, 29, take gigabytes, and the streams have at most 100,000 features.
"""

import argparse
import json
import math
import time
from pathlib import Path

import vowpalwabbit

BITS, LEAF_EXAMPLES = 24, 4
# Passes, and the flags that differ.
SETTINGS = {
    "aloi": (3, "-l 0.001 --dream_at_update 0 --dream_repeats 3"),
    "wikipara": (2, "-l 0.1 --dream_at_update 1 --dream_repeats 5 --sort_features"),
}


def hit(learner: vowpalwabbit.Workspace, line: str) -> bool:
    """Whether the tree names the label of an example."""
    label, _, features = line.partition(" | ")
    return int(learner.predict("| " + features)) == int(label)


def main() -> None:
    """Run the stream through the tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stream", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--like", choices=SETTINGS, required=True)
    options = parser.parse_args()
    lines, (passes, flags) = options.stream.read_text().splitlines(), SETTINGS[options.like]
    nodes = int(2 * passes * len(lines) / (math.log2(len(lines)) * LEAF_EXAMPLES))
    learner = vowpalwabbit.Workspace(
        f"--memory_tree {nodes} --max_number_of_labels {options.classes + 1} --leaf_example_multiplier {LEAF_EXAMPLES} "
        f"--alpha 0.1 --learn_at_leaf --loss_function squared -b {BITS} --quiet {flags}"
    )
    hits, start = [], time.process_time()
    for line in lines:
        hits.append(hit(learner, line))
        learner.learn(line)
    found = {"progressive accuracy": 100 * sum(hits) / len(hits), "one pass, CPU s": time.process_time() - start}
    for _ in range(passes - 1):
        for line in lines:
            learner.learn(line)
    tested = [hit(learner, line) for line in options.test.read_text().splitlines()]
    print(json.dumps({**found, "passes": passes, "test, last pass": 100 * sum(tested) / len(tested)}))


if __name__ == "__main__":
    main()
