"""Labelwood's backends beside omikuji's in Annif, on questions to a library: train, suggest, eval, hyperopt, learn,
REST, and an update of the vocabulary. ``make test-annif`` installs Annif and omikuji."""

import json
import sys

import pytest
from library_questions import EX, write_library

pytest.importorskip("annif", reason="annif is not installed; use make test-annif")
pytest.importorskip("omikuji", reason="omikuji is not installed; use make test-annif")

PROJECTS = """
[omikuji]
name=Omikuji
language=fi
backend=omikuji
analyzer=snowball(finnish)
vocab=yso

[labelwood]
name=Labelwood
language=fi
backend=labelwood
analyzer=snowball(finnish)
vocab=yso
n_trees=3

[online]
name=Labelwood online
language=fi
backend=labelwood_online
analyzer=snowball(finnish)
vocab=yso
n_features=65536
epochs=4
allow_learn=true
"""


class Annif:
    def __init__(self, place):
        self.place, self.folder = place, place.folder

    def __call__(self, *arguments, text=None):
        done = self.place.run(["labelwood-annif", *arguments], text=text)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def measures(self, project):
        self("eval", project, "library-test.tsv", "--metrics-file", "measures.json", "--limit", "10")
        return json.loads((self.folder / "measures.json").read_text())

    def suggested(self, project, text, limit=5):
        lines = self("suggest", project, "--limit", str(limit), text=text).splitlines()
        return [tuple(line.split("\t")[:2]) for line in lines if line.startswith("<")]


@pytest.fixture(scope="module")
def annif(tmp_path_factory, annif_folder):
    command = Annif(annif_folder(tmp_path_factory.mktemp("library")))
    write_library(command.folder)
    (command.folder / "projects.cfg").write_text(PROJECTS)
    command("load-vocab", "yso", "yso.csv")
    for project in ("omikuji", "labelwood", "online"):
        command("train", project, "library-train.tsv", "--jobs", "1")
    return command


def first_question(annif):
    return (annif.folder / "library-train.tsv").read_text(encoding="utf-8").splitlines()[0].split("\t")


def test_quality_is_at_least_omikujis(annif):
    found = {project: annif.measures(project) for project in ("omikuji", "labelwood", "online")}
    for metric in ("NDCG", "NDCG@5", "F1@5"):
        print(metric, {project: round(measures[metric], 4) for project, measures in found.items()})
        assert found["labelwood"][metric] >= found["omikuji"][metric]
    assert found["online"]["NDCG"] > 0.6 * found["omikuji"]["NDCG"]


def test_the_model_has_uris_and_the_vocabulary_of_the_project(annif):
    from labelwood import load

    model = load(annif.folder / "data/projects/labelwood/labelwood-model")
    assert model.classes_[0].startswith(EX)
    assert model.vocabulary_.name_languages == ["en", "fi"]
    text, subjects = first_question(annif)
    assert annif.suggested("labelwood", text, 1)[0][0] in subjects.split()


def test_hyperopt_recommends_settings_that_train(annif):
    said = annif("hyperopt", "labelwood", "library-test.tsv", "--trials", "3", "--metric", "NDCG", "-r", "trials.tsv")
    lines = said.split("---\n")[1].split()
    assert sorted(line.partition("=")[0] for line in lines) == ["C", "n_trees", "score_power"]
    assert (annif.folder / "trials.tsv").read_text().startswith("trial\tvalue\tC\tn_trees\tscore_power\n")
    given = [word for line in lines for word in ("--backend-param", f"labelwood.{line}")]
    annif("train", "labelwood", "--cached", *given)
    assert annif.measures("labelwood")["NDCG"] > 0.5


def test_rest_gives_the_suggestions_of_the_command(annif):
    text, _ = first_question(annif)
    script = (
        "import sys, json\n"
        "from labelwood.adapters.annif import register\n"
        "register()\n"
        "import annif\n"
        "client = annif.create_app().test_client()\n"
        "answer = client.post('/v1/projects/labelwood/suggest', data={'text': sys.argv[1], 'limit': '5'})\n"
        "print(json.dumps([[one['uri'], one['label']] for one in answer.json()['results']]))\n"
    )
    done = annif.place.run([sys.executable, "-c", script, text])
    assert done.returncode == 0, done.stderr
    answered = [(f"<{uri}>", label) for uri, label in json.loads(done.stdout.splitlines()[-1])]
    assert answered == annif.suggested("labelwood", text)


def test_the_vocabulary_is_updated_and_new_subjects_are_learned(annif):
    """Subjects are renamed and added. Annif 1.4.3 itself loses the subjects that follow a removed one."""
    text, subjects = first_question(annif)
    uri = subjects.split()[0][1:-1]
    header, *rows = (annif.folder / "yso.csv").read_text(encoding="utf-8").splitlines()
    changed = [row if row.split(",")[0] != uri else f"{uri},uusi nimi,new name" for row in rows]
    changed.append(f"{EX}new,laama,llama")
    (annif.folder / "yso.csv").write_text("\n".join([header, *changed]) + "\n", encoding="utf-8")
    annif("load-vocab", "yso", "yso.csv")
    assert (f"<{uri}>", "uusi nimi") in annif.suggested("labelwood", text)
    more = "".join(f"laamojen villa ja laama {word}\t<{EX}new>\n" for word in ("yksi", "kaksi", "kolme") * 3)
    (annif.folder / "more.tsv").write_text(more, encoding="utf-8")
    annif("learn", "online", "more.tsv")
    assert annif.suggested("online", "laamojen villasta")[0] == (f"<{EX}new>", "laama")
    from labelwood import load

    vocabulary = load(annif.folder / "data/projects/labelwood/labelwood-model").vocabulary_
    assert vocabulary.name(vocabulary.find(uri), "fi") == "uusi nimi"
