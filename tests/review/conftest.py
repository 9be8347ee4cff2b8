"""Desks with a small model, with a vocabulary, and with nothing; pages in processes of their own."""

from __future__ import annotations

import csv

import pytest

pytest.importorskip("fastapi", reason="the review page needs labelwood[serve]")

from animals import ANIMALS
from reviewing import Local, Person
from serving import LABELS, TEXTS, Running

from labelwood import LinearTree, TextClassifier
from labelwood.review.app import create_app
from labelwood.review.desk import Desk
from labelwood.review.documents import Documents
from labelwood.review.labels import KnownLabels
from labelwood.review.made_labels import MadeLabels
from labelwood.review.proposals import ModelProposals, NameProposals
from labelwood.review.queue import Queue
from labelwood.review.sitting import Sitting
from labelwood.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def text_model():
    return TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS * 3, LABELS * 3)


@pytest.fixture
def desk_of(tmp_path, text_model):
    """Makes a desk; without a model, names of a vocabulary or of label texts propose."""
    made = []

    def make(texts=TEXTS, *, ids=None, model=text_model, vocabulary=None, label_texts=None, k=5):
        documents = Documents(ids or [str(row) for row in range(1, len(texts) + 1)], texts)
        labels = KnownLabels(None if model is None else model.label_names, vocabulary, label_texts)
        sitting = Sitting(tmp_path / f"state-{len(made)}", documents)
        new = MadeLabels(labels, sitting.in_use)
        proposals = NameProposals(labels, texts, k, new.all) if model is None else ModelProposals(model, k)
        queue = Queue(documents, sitting, lambda: proposals.doubts(texts))
        made.append(Desk("docs.csv", documents, labels, new, proposals, sitting, queue, has_model=model is not None))
        return made[-1]

    yield make
    for desk in made:
        desk.close()


@pytest.fixture
def animal_desk(desk_of):
    texts = ["my domestic cat sleeps", "a dog and a cat", "nothing here"]
    return desk_of(texts, model=None, vocabulary=Vocabulary.of(ANIMALS))


@pytest.fixture
def client_of():
    def connect(desk, **options):
        return Local(create_app(desk, **options))

    return connect


@pytest.fixture
def anna(desk_of, client_of):
    return Person(client_of(desk_of()), "anna")


@pytest.fixture
def folder(tmp_path, text_model):
    with (tmp_path / "docs.csv").open("w") as file:
        csv.writer(file).writerows([["id", "text"], *([f"d{n}", text] for n, text in enumerate(TEXTS))])
    text_model.save(tmp_path / "model")
    (tmp_path / "names.tsv").write_text("law\ttax law\npets\tdogs\tcats\n")
    (tmp_path / "concepts.tsv").write_text("<http://x.org/1>\tdogs\n<http://x.org/2>\tlaw\n")
    return tmp_path


@pytest.fixture
def reviewing(folder):
    started = []

    def start(*words, **options):
        started.append(Running(folder / "docs.csv", "-o", folder / "out.csv", *words, command="review", **options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.kill()
