"""The stream of few_shot.py through Vowpal Wabbit's contextual memory tree, predicting each example before learning it.

    python experiments/oplt/few_shot.py --shots 3 --vw stream.vw
    PEERS/vw/bin/python experiments/oplt/few_shot_vw.py stream.vw --classes 10000

Needs the package ``vowpalwabbit``. The options are one plausible setting, not tuned and not the authors' own.
"""

import argparse
import time
from pathlib import Path

import vowpalwabbit


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    late = hits[len(hits) * 3 // 4 :]
    print(
        f"memory tree: progressive accuracy {sum(hits) / len(hits):.4f} (last quarter {sum(late) / len(late):.4f}), "
        f"{time.process_time() - start:.1f} CPU s"
    )


if __name__ == "__main__":
    main()
