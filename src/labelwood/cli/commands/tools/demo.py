"""Learn from the source code of this Python which functions a function calls, and show how well that works.

The documents are the functions of the standard library and of the packages that Labelwood needs. The text is a
function's name and docstring, the labels are the functions that it calls. A fifth of the functions is held out; the
suggestions for them are compared with what they really call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelwood.cli.commands.tools.demo_corpus import Corpus, Function, assemble, read_functions, source_files
from labelwood.cli.support.inputs import method_flag
from labelwood.cli.support.output import print_json, print_table, shown_seconds
from labelwood.cli.support.parser import Options, Parser, at_least
from labelwood.methods import METHODS
from labelwood.metrics import precision_at_k
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, TopK, from_scipy
from labelwood.text import TfidfEncoder

EXAMPLES = ("labelwood demo",)
_KS = (1, 3, 5)
_EXAMPLES = 5


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    method_flag(parser)
    parser.value(
        "--random-state",
        metavar="N",
        takes="an integer, at least 0",
        convert=at_least(0),
        help="seed of the split and of the model (default 0)",
        default=0,
    )
    parser.json_flag()


def run(options: Options) -> int:
    """Read the source code, encode, train, evaluate, print."""
    clock = RunContext(verbose=True)
    files = source_files()
    with clock.phase("read source", total=len(files)) as progress:
        corpus = assemble(read_functions(files, progress), seed=options.random_state)
    with clock.phase("encode text"):
        X_train, X_test = _encode(corpus)
    if not options.json:
        _print_corpus(corpus, X_train)
    model = METHODS[options.method](random_state=options.random_state, verbose=True)
    with clock.phase("train"):
        model.fit(X_train, [list(function.labels) for function in corpus.train])
    with clock.phase("predict"):
        top = model.topk_ids(X_test, max(_KS))
    truth = model.encode_labels([list(function.labels) for function in corpus.test])
    popular = _most_popular(model.label_counts_, truth.n_rows)
    quality, baseline = _precision(truth, top), _precision(truth, popular)
    examples = _examples(corpus.test, model.classes_, top)
    if options.json:
        print_json(
            {
                "method": options.method,
                "functions": {"train": len(corpus.train), "test": len(corpus.test)},
                "features": X_train.n_cols,
                "labels": model.n_labels_,
                **quality,
                "most_popular": baseline,
                "examples": examples,
                "seconds": {name: round(seconds, 3) for name, seconds in clock.seconds.items()},
            }
        )
    else:
        _print_results(options.method, quality, baseline, examples)
        print(f"\ntime: {shown_seconds(clock.seconds)}")
    return 0


def _encode(corpus: Corpus) -> tuple[CSR, CSR]:
    """Encode the texts by tf-idf, fitted on the training functions."""
    encoder = TfidfEncoder(min_df=2)
    train = from_scipy(encoder.fit_transform([function.text for function in corpus.train]))
    return train, from_scipy(encoder.transform([function.text for function in corpus.test]))


def _most_popular(counts: Any, n_rows: int) -> TopK:
    """The baseline: the most frequent labels, the same for every row."""
    best = np.argsort(-np.asarray(counts), kind="stable")[: max(_KS)].astype(np.int32)
    # The scores are ranks, not counts, so that labels with equal counts have a fixed order.
    scores = np.arange(len(best), 0, -1, dtype=np.float32)
    return TopK(np.tile(best, (n_rows, 1)), np.tile(scores, (n_rows, 1)))


def _precision(truth: CSR, top: TopK) -> dict[str, float]:
    return {f"P@{k}": round(100 * precision_at_k(truth, top, k), 2) for k in _KS}


def _examples(functions: Sequence[Function], names: Any, top: TopK) -> list[dict[str, Any]]:
    """Pick a few held-out functions, spread evenly over those with a docstring and several labels."""
    rows = [row for row, function in enumerate(functions) if "\n" in function.text and len(function.labels) >= 3]
    picked = [rows[(2 * i + 1) * len(rows) // (2 * _EXAMPLES)] for i in range(min(_EXAMPLES, len(rows)))]
    return [
        {
            "function": functions[row].origin,
            "text": functions[row].text,
            "suggested": [str(names[label]) for label in top.labels[row].tolist() if label >= 0],
            "true": list(functions[row].labels),
        }
        for row in picked
    ]


def _print_corpus(corpus: Corpus, X: CSR) -> None:
    labels = {label for side in corpus for function in side for label in function.labels}
    n_train, n_test = len(corpus.train), len(corpus.test)
    print(f"{n_train + n_test:,} functions of this Python, {len(labels):,} functions they call, {X.n_cols:,} words.")
    print(f"Trained on {n_train:,} functions, evaluated on the other {n_test:,}.\n", flush=True)


def _print_results(
    method: str, quality: dict[str, float], baseline: dict[str, float], examples: list[dict[str, Any]]
) -> None:
    print_table(
        ["precision, percent", *quality],
        [
            ["most popular labels", *(f"{value:.2f}" for value in baseline.values())],
            [method, *(f"{value:.2f}" for value in quality.values())],
        ],
    )
    print("\nFive held-out functions; * marks a correct suggestion.")
    for example in examples:
        name, _, docstring = example["text"].partition(". ")
        true = set(example["true"])
        marked = [f"{label}*" if label in true else label for label in example["suggested"]]
        print(f"\n{example['function']}: {docstring.partition(chr(10))[0] or name}")
        print(f"  suggested  {', '.join(marked)}")
        print(f"  calls      {', '.join(example['true'])}")
