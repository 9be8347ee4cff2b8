"""Train and evaluate Annif projects of several backends on the same documents, and write the record of the table.

    make build/adapters/annif/installed && build/adapters/annif/bin/python -m pip install fasttext-numpy2==0.10.4
    python -m experiments.annif.measure --annif build/adapters/annif/bin

The documents are the first rows of yso_finna_fi_full that have one of its 500 most frequent subjects; other subjects
are left out, because a first run on 5,000 documents of all subjects reached an F1@5 of .016 and compared nothing.
The analyzer of all backends is ``snowball(finnish)``. The settings are the defaults of the backends, except for three
trees of LinearTree, as omikuji has, and for fastText, whose settings are not tuned: hierarchical softmax, 100
dimensions, a learning rate of 0.25, 30 epochs. MLLM learns from the first 500 documents: it compares words of texts
with names of subjects, and more documents cost much time. CPU seconds are those of the whole command, also of Annif's
start.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import resource
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "experiments" / "records" / "annif.json"
COLUMNS = "uri,label_fi,alt_fi,label_en,label_sv,count"
BACKENDS = {
    "labelwood": "backend=labelwood\nn_trees=3",
    "labelwood_online": "backend=labelwood_online\nepochs=3",
    "omikuji": "backend=omikuji",
    "fasttext": "backend=fasttext\nloss=hs\ndim=100\nlr=0.25\nepoch=30",
    "mllm": "backend=mllm",
}
METRICS = ("F1@5", "NDCG", "NDCG@5", "Precision@1")
MLLM_DOCUMENTS = 500
N_SUBJECTS = 500


def documents(path: Path, subjects: set[str], count: int) -> Iterator[str]:
    """Lines of Annif's corpus format: texts with one of the subjects or more."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = map(json.loads, file)
        kept = ((row["text"], [label for label in row["labels"] if label in subjects]) for row in rows)
        for text, labels in islice((pair for pair in kept if pair[1]), count):
            yield f"{' '.join(text.split())}\t{' '.join(f'<{uri_of(label)}>' for label in labels)}\n"


def uri_of(label: str) -> str:
    """The URI of a subject."""
    return label.replace("yso:", "http://www.yso.fi/onto/yso/")


def prepare(folder: Path, data: Path, n_train: int, n_test: int) -> None:
    """Write the documents, the vocabulary as SKOS and the projects."""
    from labelwood.vocabulary import Concept, Vocabulary, load_vocabulary, save_vocabulary

    folder.mkdir(parents=True, exist_ok=True)
    lines = (data / "labels.tsv").read_text(encoding="utf-8").splitlines()
    counts = {line.split("\t")[0]: int(line.split("\t")[-1]) for line in lines}
    subjects = set(sorted(counts, key=lambda label: (-counts[label], label))[:N_SUBJECTS])
    for name, count in (("train", n_train), ("test", n_test)):
        found = documents(data / f"{name}.jsonl.xz", subjects, count)
        (folder / f"{name}.tsv").write_text("".join(found), encoding="utf-8")
    known = load_vocabulary(data / "labels.tsv", columns=COLUMNS.split(","))
    kept = (Concept(uri_of(one.uri), one.texts) for one in known if one.uri in subjects)
    save_vocabulary(Vocabulary.of(kept), folder / "yso.ttl")
    common = "language=fi\nanalyzer=snowball(finnish)\nvocab=yso\n"
    projects = (f"[{name}]\nname={name}\n{common}{settings}\n" for name, settings in BACKENDS.items())
    (folder / "projects.cfg").write_text("\n".join(projects))


# NLTK splits texts into sentences first; an untrained splitter saves a download, and titles have one sentence.
PUNKT = (
    "import sys, pathlib; from nltk.tokenize.punkt import PunktParameters, save_punkt_params; "
    "folder = pathlib.Path(sys.argv[1]); folder.mkdir(parents=True, exist_ok=True); "
    "save_punkt_params(PunktParameters(), str(folder))"
)


def run(annif: Path, folder: Path, *words: str) -> float:
    """Run ``labelwood-annif`` in the folder; return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "ANNIF_CONFIG": "annif.default_config.Config", "NLTK_DATA": str(folder / "nltk")}
    subprocess.run([annif / "labelwood-annif", *words], cwd=folder, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(annif: Path, folder: Path, backend: str) -> dict[str, float]:
    """Train and evaluate one project."""
    limited = ["--docs-limit", str(MLLM_DOCUMENTS)] if backend == "mllm" else []
    jobs = [] if backend == "fasttext" else ["--jobs", "1"]
    train = run(annif, folder, "train", backend, "train.tsv", *jobs, *limited)
    evaluate = run(annif, folder, "eval", backend, "test.tsv", "--metrics-file", f"{backend}.json")
    found = json.loads((folder / f"{backend}.json").read_text())
    return {**{name: found[name] for name in METRICS}, "train": train, "evaluate": evaluate}


def main() -> None:
    """Measure the backends and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annif", type=Path, required=True, help="folder of the command labelwood-annif")
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data"))
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "annif")
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=1_000)
    parser.add_argument("--backends", default=",".join(BACKENDS))
    options = parser.parse_args()
    annif = options.annif.absolute()
    prepare(options.folder, options.data / "yso_finna_fi_full", options.train, options.test)
    punkt = options.folder / "nltk" / "tokenizers" / "punkt_tab" / "english"
    subprocess.run([annif / "python", "-c", PUNKT, punkt], check=True)
    run(annif, options.folder, "load-vocab", "yso", "yso.ttl", "--force")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"rows": {}}
    record |= {"data": "yso_finna_fi_full", "train": options.train, "test": options.test}
    for backend in options.backends.split(","):
        record["rows"][backend] = measure(annif, options.folder, backend)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(backend, record["rows"][backend], flush=True)


if __name__ == "__main__":
    main()
