"""``labelwood tune`` and ``train --method auto``."""

import pytest

from labelwood import METHODS


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.csv"
    rows = [f"word{i % 12} and word{i % 7} text{i % 3},tag {i % 12};other {i % 7}" for i in range(300)]
    path.write_text("text,tags\n" + "\n".join(rows) + "\n")
    return path


def test_texts_are_tuned_trained_and_predicted(labelwood, docs, tmp_path):
    model = tmp_path / "model"
    done = labelwood("tune", docs, "--budget", "4s", "--metric", "P@1", "-o", model, "--n-jobs", 1)
    assert done.code == 0, done.err
    assert "P@1" in done.out
    assert "rows held out" in done.out
    assert "of the rows" in done.err
    assert labelwood("info", model, "--json").json["method"] in METHODS
    assert "tag 3" in labelwood("predict", model, "word3 and word3", "-k", 2).out


def test_vectors_as_json(labelwood, data):
    found = labelwood("tune", data, "--budget", "3s", "--max-memory", "1G", "--json", "--n-jobs", 1).json
    assert found["method"] in METHODS
    assert found["metric"] == "P@5"
    assert len(found["trials"]) > 10
    assert found["why"].startswith(found["method"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--budget", "soon"), "--budget takes a time such as 90s, 10m or 1h; got 'soon'"),
        (("--budget", "-3"), "--budget takes a time such as 90s, 10m or 1h; got"),
        (("--metric", "Q@5"), "--metric takes a metric such as P@5"),
        (("--max-memory", "0"), "--max-memory takes a number of bytes, such as 500MB; got '0'"),
    ],
)
def test_wrong_usage(labelwood, data, words, line):
    assert line in labelwood("tune", data, *words).complaint(2)


def test_auto_chooses_and_says_why(labelwood, docs, data, tmp_path):
    for source in (docs, data):
        model = tmp_path / f"model-{source.stem}"
        done = labelwood("train", source, "-o", model, "--method", "auto", "--n-jobs", 1, "--json")
        assert done.json["method"] == "one-vs-rest"
        assert "one-vs-rest: " in done.err
    assert "tag 3" in labelwood("predict", tmp_path / "model-docs", "word3 and word3", "-k", 2).out
    assert "there is no flag --n-trees" in labelwood(
        "train", docs, "-o", tmp_path / "m", "--method", "auto", "--n-trees", 3
    ).complaint(2)


def test_flags_of_the_encoder_are_fixed_choices(labelwood, docs, data, tmp_path):
    told = ("tune", docs, "--budget", "5s", "--metric", "P@1", "--n-jobs", 1)
    found = labelwood(*told, "--ngram-range", "1,2", "--json").json
    assert all("ngram_range" not in trial["encoder"] for trial in found["trials"])
    assert {trial["encoder"].get("min_df") for trial in found["trials"]} >= {None, 2}
    done = labelwood(*told, "--text", "text^2", "--min-df", 2, "-o", tmp_path / "m")
    assert done.code == 0, done.err
    encoder = labelwood("info", tmp_path / "m", "--json").json["encoder"]["parameters"]
    assert (encoder["min_df"], list(encoder["fields"])) == (2, ["text"])
    assert "--ngram-range has no effect" in labelwood("tune", data, "--ngram-range", "1,2").complaint(2)
    assert "there is no flag --beam-width" in labelwood("tune", docs, "--beam-width", 3).complaint(2)
