"""What the commands of the pages print or write where a page does not show it, by page and by the start of the block.

The output is compared as a promised one: ``...`` stands for anything.
"""

from __future__ import annotations

from typing import NamedTuple


class Unshown(NamedTuple):
    """What a block prints, and the files that are there afterwards."""

    prints: str = ""
    writes: tuple[str, ...] = ()


UNSHOWN: dict[str, dict[str, Unshown]] = {
    "README.md": {
        "pip install": Unshown(),
        "cat > docs.csv": Unshown(
            "model model\nmethod linear-tree\n...\nlaw:...\npercent @1 95% ...\nlaw ...\nhtml tree.html\n...\n"
            "candidate ...\ntrained on all rows: better-model",
            ("model/manifest.json", "suggestions.txt", "tree.html", "better-model/manifest.json"),
        ),
        "from labelwood import TextClassifier": Unshown(writes=("model/manifest.json",)),
        "import numpy as np": Unshown(),
        "labelwood data synth": Unshown(
            "file train.txt.xz\n...\nfile test.txt.xz\n...\nmodel model\n...\npercent @1 95% ...\nmodel model\n...",
            ("train.txt.xz", "test.txt.xz"),
        ),
    },
    "index.md": {
        "pip install": Unshown(),
        "labelwood train": Unshown("model model\n...\nlaw:...\npercent @1 95% ...", ("model/manifest.json",)),
    },
    "guide.md": {
        "from labelwood import LinearTree": Unshown(writes=("model/manifest.json",)),
        "from sklearn.model_selection": Unshown("{'classifier__n_trees': ..., 'encoder__ngram_range': (1, ...)}"),
    },
    "recipes.md": {
        "labelwood split docs.csv": Unshown(
            "train\n file train.csv\n rows 8\nheld_out\n file held-out.csv\n rows 2\nmodel model\n...\nP ...",
            ("train.csv", "held-out.csv", "model/manifest.json", "suggestions.csv"),
        ),
        'from labelwood import load\n\nmodel = load("model")\nlabels, scores': Unshown(),
        "labelwood train annif-corpus.tsv": Unshown(
            "model annif-model\n...\nlabels 2\n...\nmodel fasttext-model\n...\nlabels 2\n...",
            ("annif-model/manifest.json", "fasttext-model/manifest.json"),
        ),
        "labelwood eval model held-out.csv --per-label": Unshown(
            "percent @1 95% @3 95% @5 95%\nP ...\n\nlabels count in training share of truth ...",
            ("labels.csv", "recall.png"),
        ),
        "labelwood explain model held-out.csv": Unshown("law ...\n\nmoney: place ..., score ...\n tree 1: ..."),
        "labelwood train train.csv -o new-model": Unshown(
            "model new-model\n...\nmodel third-model\n...\npercent @1 ...\nnew-model ...\nthird-model ...",
            ("new-model/manifest.json", "third-model/manifest.json"),
        ),
        "labelwood tune": Unshown("candidate nDCG@5 rows seconds size ended\n...", ("tuned/manifest.json",)),
        "labelwood tree model --html": Unshown(
            "html tree.html\ntree 1 of 1\nnodes 5\ndot tree.dot\ntree 1 of 1\nnodes 5", ("tree.html", "tree.dot")
        ),
        "labelwood train docs.csv -o daily": Unshown(
            "model daily\n...\nmodel daily\nrows 3\nlabels 6\nnew_labels 2\n...",
            ("daily/manifest.json", "model-to-ship/manifest.json"),
        ),
        "labelwood review": Unshown(),
        "labelwood train docs.csv -o ordered": Unshown("model ordered\n...\ndepth 2\nnodes 7\n..."),
        'from labelwood import load\n\nmodel = load("model")\ndecided': Unshown(),
        "labelwood calibrate": Unshown("model model\n...\nthreshold ...\nrows_with_labels_percent ...\npets:..."),
        "labelwood eval model held-out.csv --objective": Unshown(
            "percent @1 ...\nR@5 by label frequency, without and with --objective tail\n..."
        ),
        "labelwood train docs.csv -o fields-model": Unshown("model fields-model\n...\nlaw:... money:..."),
        "printf": Unshown("model named-model\nmethod ranker\n...", ("names.tsv", "named-model/manifest.json")),
        "labelwood train docs.csv -o blend": Unshown(
            'model blend\nmethod blend\n...\nmembers ["linear-tree", "one-vs-rest", "craft-forest"]\n...'
        ),
        "labelwood shrink": Unshown("percent size P@1 P@3 P@5 lost@1 lost@3 lost@5\nas it is ...", ("small",)),
        'from labelwood import load\n\nmodel = load("model")\n[why]': Unshown(
            "law ...\n\nmoney: place 2, ...\n0 0.9... [('tax', ...\n[('tax', ...)]"
        ),
        "eval ": Unshown(),
    },
    "cli.md": {
        "labelwood serve online": Unshown(),
        "labelwood review": Unshown(writes=("reviewed.jsonl",)),
        "labelwood tree model --html": Unshown("html tree.html\n...", ("tree.html",)),
        "eval ": Unshown(),
    },
    "embeddings.md": {
        "labelwood split docs.csv": Unshown(
            "train\n file train.csv\n rows 8\n...file train.npy\n rows 8\n...model model\n...encoder vectors\n...P ...",
            ("train.npy", "held-out.npy", "model/manifest.json"),
        ),
        "labelwood train train.csv": Unshown(
            "model weighed\n...\nvector_weight ...vector_weight ...", ("weighed/manifest.json",)
        ),
        "from labelwood import TextClassifier, VectorEncoder": Unshown(writes=("vectors.db",)),
    },
    "service.md": {
        "pip install": Unshown("model model\nmethod living-tree\n...", ("model/manifest.json", "model.state/lock")),
        "labelwood restore": Unshown("model now\nrecord 1\n...\nexamples_learned 0\nlabels 4", ("now/manifest.json",)),
    },
    "review.md": {
        "pip install": Unshown("model model\nmethod linear-tree\n...", ("model/manifest.json",)),
        "labelwood review new.csv": Unshown(writes=("reviewed.csv",)),
        "labelwood review letters.txt": Unshown(),
    },
    "memory.md": {
        "labelwood estimate": Unshown("method linear-tree\nmodel ...\npeak memory ...\ntime ...\n..."),
        'from labelwood import LinearTree, data\n\ntrain = data.load("train.txt.xz")\nfound': Unshown("... ... ..."),
        "labelwood train train.txt.xz -o model": Unshown("model model\n...", ("model/manifest.json",)),
        'from labelwood import LinearTree, data\n\ntrain = data.load("train.txt.xz")\nLinearTree': Unshown(),
        "labelwood shrink": Unshown("percent size P@1 P@3 P@5 lost@1 lost@3 lost@5\nas it is ...", ("small",)),
    },
    "metrics.md": {"import numpy as np": Unshown("1.0 1.0"), "from labelwood import metrics": Unshown("0.5\n0.5...")},
    "scale.md": {
        "import numpy as np": Unshown(writes=("done",)),
        "labelwood convert": Unshown("file big.lw\n...\nmodel model\n...", ("big.lw", "parts", "model/manifest.json")),
    },
    "runbook.md": {
        "labelwood train": Unshown("model model\nmethod online-tree\n...", ("service.log",)),
        "curl": Unshown("1..."),
    },
}
