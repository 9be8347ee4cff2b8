"""What the tests of adapters share: a directory in which Annif runs, and a hub."""

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
    """Lines of Annif's corpus format: a text, and the URIs of one or two subjects."""
    lines = []
    for row in range(n_rows):
        chosen = sorted({ids[row % len(ids)], ids[(row // 2) % len(ids)]})
        text = " ".join(f"{WORDS[i]} word{row % 7}" for i in chosen)
        lines.append(text + "\t" + " ".join(f"<http://example.org/{SUBJECTS[i]}>" for i in chosen) + "\n")
    return "".join(lines)


class AnnifFolder:
    """A directory with projects, a vocabulary, documents, and what Annif's tokenizer needs."""

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
        """Run a command there; console scripts are those of this Python."""
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
    """A hub on this machine."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    from tiny_hub import TinyHub

    hub = TinyHub()
    yield hub
    hub.close()


@pytest.fixture(scope="session")
def annif_folder():
    """The class, to be made in a directory of the test's."""
    return AnnifFolder


def _write_punkt(folder: Path) -> None:
    """NLTK's sentence splitter with nothing learnt, in place of the one it would fetch from the network."""
    from nltk.tokenize.punkt import PunktParameters, save_punkt_params

    folder.mkdir(parents=True)
    save_punkt_params(PunktParameters(), str(folder))
