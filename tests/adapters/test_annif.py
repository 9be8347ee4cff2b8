"""LinearTree and OnlineTree as backends of Annif, used through Annif's command line."""

import json
import re

import pytest

pytest.importorskip("annif", reason="annif is not installed; use make test-adapters")


class Annif:
    """``labelwood-annif`` in its own folder."""

    def __init__(self, place):
        self.place, self.folder = place, place.folder

    def __call__(self, *arguments, text=None, fails=False):
        done = self.place.run(["labelwood-annif", *arguments], text=text)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    def suggestions(self, project, text):
        """The suggested subjects with scores, best first."""
        found = self("suggest", project, "--limit", "3", text=text)
        return [(line.split("\t")[1], float(line.split("\t")[-1])) for line in found.splitlines()]

    def measures(self, project, *arguments):
        self("eval", project, "test.tsv", "--metrics-file", "measures.json", *arguments)
        return json.loads((self.folder / "measures.json").read_text())


@pytest.fixture(scope="module")
def annif(tmp_path_factory, annif_folder):
    command = Annif(annif_folder(tmp_path_factory.mktemp("annif")))
    command("load-vocab", "animals", "animals.csv")
    return command


def test_train_suggest_and_eval(annif):
    annif("train", "tree", "train.tsv", "--jobs", "1")
    assert (annif.folder / "data/projects/tree/labelwood-model/manifest.json").exists()
    best, *others = annif.suggestions("tree", "a kitten chases a mouse")
    assert best[0] == "cats"
    assert best[1] > 0.5 > others[0][1]
    assert annif.suggestions("tree", "unheard of") == []
    assert annif.measures("tree")["NDCG"] > 0.9
    assert annif.measures("tree", "--jobs", "2")["NDCG"] > 0.9
    assert "labelwood" in annif("show-project", "tree")


def test_parameters_come_from_the_project_and_from_the_command(annif):
    model = annif.folder / "data/projects/tree/labelwood-model/manifest.json"
    annif("train", "tree", "train.tsv")
    assert json.loads(model.read_text())["parameters"]["n_trees"] == 2
    annif("train", "tree", "--cached", "--backend-param", "labelwood.n_trees=1")
    assert json.loads(model.read_text())["parameters"]["n_trees"] == 1
    refused = annif("train", "tree", "--cached", "--backend-param", "labelwood.n_trees=0", fails=True)
    assert re.search("Misconfigured.*n_trees must be at least 1; got 0", refused)
    refused = annif("train", "tree", "--cached", "--backend-param", "labelwood.n_trees=few", fails=True)
    assert re.search("Misconfigured.*n_trees must be an integer.*got 'few'", refused)


def test_an_online_project_learns_new_subjects(annif):
    annif("train", "stream", "train.tsv")
    assert annif.measures("stream")["NDCG"] > 0.9
    text = "a caravan in the andes"
    assert "llamas" not in dict(annif.suggestions("stream", text))
    annif("learn", "stream", "more.tsv")
    assert annif.suggestions("stream", text)[0][0] == "llamas"
    assert annif.measures("stream")["NDCG"] > 0.9
    assert "Learning not supported" in annif("learn", "tree", "more.tsv", fails=True)


def test_missing_models_and_documents_are_reported(annif):
    annif("clear", "stream")
    assert "Couldn't initialize" in annif("suggest", "stream", text="cats", fails=True)
    assert "no cached training data" in annif("train", "stream", "--cached", fails=True)
    (annif.folder / "none.tsv").write_text("")
    assert "with no documents" in annif("train", "stream", "none.tsv", fails=True)


def test_a_damaged_model_is_refused(annif):
    annif("train", "tree", "train.tsv")
    (annif.folder / "data/projects/tree/labelwood-model/manifest.json").write_text("{")
    assert "manifest.json is damaged" in annif("suggest", "tree", text="cats", fails=True)
    annif("train", "tree", "train.tsv", fails=True)  # a folder that is not a model is not replaced
    annif("clear", "tree")
    annif("train", "tree", "train.tsv")
