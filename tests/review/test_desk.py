"""What the page offers: labels with names and places, suggestions with and without a model, reasons, exports."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from animals import ANIMALS, EX
from reviewing import Person
from serving import LABELS, TEXTS

from labelwood import CraftForest, HashingEncoder, LinearTree, OnlineTree, Ranker, TextClassifier
from labelwood.data import load_text
from labelwood.data.texts import TextDataset
from labelwood.errors import LabelwoodError
from labelwood.review.documents import Documents
from labelwood.review.export import format_of
from labelwood.review.labels import KnownLabels
from labelwood.review.progress import progress_of
from labelwood.review.sitting import Reviewed
from labelwood.vocabulary import Vocabulary


def done(desk, document, *labels, who="anna"):
    for number, label in enumerate(labels):
        desk.sitting.decide(document, "accept", who=who, key=f"{document}-{number}-{who}", label=label)
    suggested = [one.label for one in desk.proposals.suggest(desk.documents.texts[desk.documents.row(document)])]
    desk.sitting.decide(document, "done", who=who, key=f"{document}-done-{who}", suggested=suggested)


def test_labels_have_names_places_and_alternative_names():
    labels = KnownLabels(vocabulary=Vocabulary.of(ANIMALS))
    assert EX + "hound" not in labels.labels, "deprecated"
    (cat,) = labels.find("domestic", 5, "fi")
    assert cat == (EX + "cat", "kissa", ["eläin"], "domestic | cat")
    assert [one.name for one in labels.find("kissa", 5)] == ["cat"]
    assert [one.label for one in labels.find("599", 5)] == [EX + "cat"], "notations are found"
    assert labels.find("example", 20)[0].label.startswith(EX), "and parts of URIs"
    assert labels.is_closed
    with pytest.raises(LabelwoodError, match="language must be one of"):
        labels.language("de")


def test_a_concept_is_the_label_by_which_the_model_knows_it(text_model):
    labels = KnownLabels(TextClassifier().fit(["a cat", "law"], [["cat"], ["tax"]]).label_names, Vocabulary.of(ANIMALS))
    assert labels.knows("cat")
    assert not labels.knows(EX + "cat")
    assert labels.shown("cat", "fi").name == "kissa"
    assert labels.shown("tax").name == "tax"
    assert labels.shown("never seen").place == []


def test_label_texts_name_labels():
    labels = KnownLabels(texts={"L1": ["income tax", "tax on income"], "L2": []})
    assert labels.find("inc", 3)[0][:2] == ("L1", "income tax")
    assert labels.find("on", 3)[0].also == "tax on income"
    assert labels.find("l2", 3)[0].label == "L2"
    assert not labels.is_closed


def test_without_a_model_names_propose(animal_desk):
    found = animal_desk.proposals.suggest("my domestic cat sleeps")
    assert found[0].label == EX + "cat"
    assert animal_desk.proposals.suggest("nothing here") == []
    told = animal_desk.why("1", EX + "cat")
    assert told.sentences == ["Its name stands in the text: “cat”."]
    assert [piece for piece in told.parts[0].pieces if piece[1]] == [("cat", 1.0)]
    assert animal_desk.proposals.doubts(animal_desk.documents.texts).shape == (3,)


def test_without_labels_nothing_is_proposed(desk_of):
    desk = desk_of(["a text"], model=None)
    assert desk.proposals.suggest("a text") == []
    assert desk.proposals.doubts(["a text"]).tolist() == [0]


def test_labels_that_people_make_are_found_and_suggested(desk_of, client_of):
    desk = desk_of(["whales and taxes", "Tax on big whales", "no such word", "whales, tax"], model=None)
    anna, bert = Person(client_of(desk), "anna"), Person(client_of(desk), "bert")
    assert anna.open()["suggestions"] == []

    def found(query):
        return [one["label"] for one in bert.client.get("/find", params={"q": query}).json()["labels"]]

    for label in ("Whales", "tax", "mammal"):
        anna.decide("1", "accept", label)
    assert (found("wha"), found("ma"), desk.facts().labels) == (["Whales"], ["mammal"], 3)
    opened = bert.open()
    assert [(one["label"], one["score"]) for one in opened["suggestions"]] == [("Whales", None), ("tax", None)]
    assert desk.why("2", "Whales").sentences == ["Its name stands in the text: “Whales”."]
    bert.decide("2", "accept", "big whales")
    assert found("whales") == ["Whales", "big whales"]
    bert.undo()  # a slip is not suggested
    assert found("whales") == ["Whales"]
    assert desk.proposals.suggest("no such word") == []
    anna.decide("1", "reject", "tax")
    assert [one.label for one in desk.proposals.suggest("whales, tax")] == ["Whales"]


def test_labels_that_people_make_stand_beside_those_of_a_model(desk_of, client_of):
    desk = desk_of()
    anna = Person(client_of(desk), "anna")
    anna.decide("1", "accept", "law school")
    assert [one.label for one in desk.find("law", 5, "").labels] == ["law school", "law"]
    assert [one.label for one in desk.find("law", 1, "").labels] == ["law school"]
    assert desk.facts().labels == len(desk.labels) + 1


@pytest.mark.parametrize(
    "model",
    [
        TextClassifier(LinearTree(n_jobs=1)),
        TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_jobs=1)),
        TextClassifier(CraftForest(n_trees=5, n_jobs=1)),
        TextClassifier(Ranker(n_jobs=1)),
    ],
    ids=["linear-tree", "online-tree", "craft-forest", "ranker"],
)
def test_words_that_speak_for_a_label(desk_of, model):
    texts, labels = TEXTS * 5, LABELS * 5
    desk = desk_of(["The COURT decided: guilty 😀 by law"], model=model.fit(texts, labels))
    told = desk.why("1", "court")
    words = {text.lower(): amount for part in told.parts for text, amount in part.pieces if amount}
    assert words["court"] == max(words.values()) > 0
    assert any("“court”" in sentence and "speak" in sentence for sentence in told.sentences)
    assert any("score" in sentence for sentence in told.sentences)
    assert "".join(text for part in told.parts for text, _ in part.pieces) == desk.documents.texts[0]


def test_stems_and_pairs_mark_the_words_of_the_text(desk_of):
    pytest.importorskip("Stemmer", reason="stems need PyStemmer")
    encoder = {"words": "stems", "language": "en", "ngram_range": (1, 2)}
    model = TextClassifier(LinearTree(n_jobs=1)).set_params(**{f"encoder__{k}": v for k, v in encoder.items()})
    desk = desk_of(["Taxes on barking dogs"], model=model.fit(TEXTS * 3, LABELS * 3))
    marked = {text for part in desk.why("1", "pets").parts for text, amount in part.pieces if amount > 0}
    assert "dogs" in marked


def test_fields_stay_apart(desk_of):
    records = [{"title": text, "body": ""} for text in TEXTS]
    model = TextClassifier(LinearTree(n_jobs=1), fields={"title": 2.0, "body": 1.0}).fit(records * 3, LABELS * 3)
    desk = desk_of([{"title": "a dog", "body": "barks"}], model=model)
    assert [part.name for part in desk.why("1", "pets").parts] == ["title", "body"]
    done(desk, "1", "pets")
    (row,) = csv.DictReader(io.StringIO(desk.export("csv")))
    assert (row["title"], row["body"], row["labels"]) == ("a dog", "barks", "pets")


def test_a_label_that_is_not_suggested(desk_of):
    told = desk_of(["a dog in the zoo"]).why("1", "zoo")
    assert told.sentences == ["The model does not suggest it.", "Its name stands in the text: “zoo”."]


def test_models_of_vectors_are_refused(desk_of):
    with pytest.raises(LabelwoodError, match="trained on vectors"):
        desk_of(model=LinearTree(n_jobs=1).fit(np.eye(3, dtype=np.float32), [["a"], ["b"], ["c"]]))


def test_exports_hold_what_was_done(desk_of, tmp_path):
    desk = desk_of(['a "dog",\nbarks', "tax law", "left alone"])
    done(desk, "1", "pets", "new one")
    done(desk, "2", who="bert")
    for suffix, format in (("csv", "csv"), ("jsonl", "jsonl")):
        path = tmp_path / f"out.{suffix}"
        path.write_text(desk.export(format))
        read = load_text(path, keep_table=True)
        assert read.texts == ['a "dog",\nbarks', "tax law"]
        assert read.labels == [["pets", "new one"], []]
        assert read.table["who"] == ["anna", "bert"]
        assert read.table["id"] == ["1", "2"]
    lines = [json.loads(line) for line in desk.export("jsonl").splitlines()]
    assert lines[0]["names"] == ["pets", "new one"]
    assert lines[0]["when"].endswith("+00:00")


def test_annif_takes_uris(animal_desk, tmp_path, desk_of):
    done(animal_desk, "2", EX + "dog", EX + "cat")
    done(animal_desk, "3")
    (tmp_path / "out.tsv").write_text(animal_desk.export("annif"))
    read = load_text(tmp_path / "out.tsv")
    assert (read.texts, read.labels) == (["a dog and a cat"], [[EX + "dog", EX + "cat"]])
    other = desk_of()
    done(other, "1", "not a URI")
    with pytest.raises(LabelwoodError, match=r"labels are URIs; 'not a URI' is none"):
        other.export("annif")


def test_a_separator_that_no_label_contains(desk_of):
    desk = desk_of()
    done(desk, "1", "a;b", "c")
    assert "a;b|c" in desk.export("csv")
    done(desk, "2", "x|y,z")
    with pytest.raises(LabelwoodError, match="write JSON lines"):
        desk.export("csv")


@pytest.mark.parametrize("name", ["out.txt", "out", "out.csv.gz"])
def test_the_suffix_tells_the_format(tmp_path, name):
    with pytest.raises(LabelwoodError, match=r"\.csv, \.jsonl or \.tsv"):
        format_of(tmp_path / name)


def test_progress():
    reviewed = [
        Reviewed({"a": "accept", "b": "reject"}, "anna", 1, ["a", "b"]),
        Reviewed({"c": "accept"}, "bert", 2, ["a", "b"]),
    ]
    found = progress_of(5, reviewed)
    assert (found.done, found.accepted, found.rejected, found.added, found.unchanged) == (2, 1, 1, 1, 1)
    assert found.by_person == {"anna": 1, "bert": 1}
    assert [point.first for point in found.agreement] == [1.0, 0.0]
    assert progress_of(5, []).agreement == []


def test_ids_of_documents():
    data = TextDataset(["x", "y"], None, {"text": ["x", "y"], "ID": ["p", "q"], "kind": ["k", "k"]})
    assert Documents.of(data).ids == ["p", "q"]
    with pytest.raises(LabelwoodError, match="must be distinct; 'k' stands twice"):
        Documents.of(data, "kind")
    with pytest.raises(LabelwoodError, match="there is no column 'nr'"):
        Documents.of(data, "nr")
    assert Documents.of(TextDataset(["x", "y"], None, {"id": ["p", "p"]})).ids == ["1", "2"], "no ids: rows"
    long = TextDataset(["x"], None, {"id": ["p" * 1001]})
    assert Documents.of(long).ids == ["1"], "a request could not name it"
    with pytest.raises(LabelwoodError, match="at most 1000 characters long; one has 1001"):
        Documents.of(long, "id")
    half = TextDataset(["a \ud83d half"], None)
    assert Documents.of(half).texts == ["a ? half"]


def test_two_people_get_different_documents(desk_of, client_of):
    client = client_of(desk_of())
    anna, bert = Person(client, "anna"), Person(client, "bert")
    first, second = anna.open(), bert.open()
    assert first["document"] != second["document"]
    anna.decide(first["document"], "accept", "pets")
    assert bert.open(document=first["document"])["state"]["marks"] == {"pets": "accept"}
    assert client.get("/facts").json()["people"] == ["anna", "bert"]
