"""Fixtures of the adapter tests: a folder in which Annif runs, and a local model hub."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECTS = """
[tree]
name=Linear tree
language=en
backend=labelwood
analyzer=simple
vocab=animals
n_trees=2
max_leaf=10

[stream]
name=Online tree
language=en
backend=labelwood_online
analyzer=simple
vocab=animals
n_features=4096
epochs=4
allow_learn=true
"""
SUBJECTS = ["cats", "dogs", "birds", "fish", "horses", "llamas"]
WORDS = [
    "purring whiskers kitten mouse",
    "barking puppy leash bone",
    "feathers wings nest song",
    "gills fins pond scales",
    "saddle hooves gallop stable",
    "andes wool caravan spit",
]


def documents(ids: list[int], n_rows: int) -> str:
    """Documents in Annif's corpus format: a text and the URIs of one or two subjects per line."""
    lines = []
    for row in range(n_rows):
        chosen = sorted({ids[row % len(ids)], ids[(row // 2) % len(ids)]})
        text = " ".join(f"{WORDS[i]} word{row % 7}" for i in chosen)
        lines.append(text + "\t" + " ".join(f"<http://example.org/{SUBJECTS[i]}>" for i in chosen) + "\n")
    return "".join(lines)


class AnnifFolder:
    """A folder with Annif projects, a vocabulary, documents, and the data of Annif's tokenizer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "projects.cfg").write_text(PROJECTS)
        (folder / "animals.csv").write_text(
            "uri,label_en\n" + "".join(f"http://example.org/{name},{name}\n" for name in SUBJECTS)
        )
        (folder / "train.tsv").write_text(documents([0, 1, 2, 3, 4], 60))
        (folder / "test.tsv").write_text(documents([0, 1, 2, 3, 4], 15))
        (folder / "more.tsv").write_text(documents([5], 10))
        _write_punkt(folder / "nltk_data/tokenizers/punkt_tab/english")

    def run(self, command: list[str], *, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder, with the console scripts of this Python on the PATH."""
        scripts = str(Path(sys.executable).parent)
        return subprocess.run(
            command,
            cwd=self.folder,
            input=text,
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            env={
                **os.environ,
                "ANNIF_CONFIG": "annif.default_config.Config",
                "NLTK_DATA": str(self.folder / "nltk_data"),
                "PATH": scripts + os.pathsep + os.environ["PATH"],
            },
        )


@pytest.fixture
def tiny_hub(monkeypatch):
    """A Hugging Face hub on this machine."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    from tiny_hub import TinyHub

    hub = TinyHub()
    yield hub
    hub.close()


@pytest.fixture(scope="session")
def annif_folder():
    """The class, so that each test can make its own folder."""
    return AnnifFolder


def _write_punkt(folder: Path) -> None:
    """Write an untrained NLTK sentence splitter, so that NLTK does not download one."""
    from nltk.tokenize.punkt import PunktParameters, save_punkt_params

    folder.mkdir(parents=True)
    save_punkt_params(PunktParameters(), str(folder))
