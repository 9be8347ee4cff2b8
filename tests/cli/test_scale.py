"""The flags of work that is divided: checkpoints, executors, data set directories."""

import json

import numpy as np
import pytest

from labelwood.data import load


def arrays_of(model):
    return {path.name: path.read_bytes() for path in model.glob("*.npy")}


def test_a_training_with_a_checkpoint_is_resumed(labelwood, data, tmp_path):
    plain, again = tmp_path / "plain", tmp_path / "again"
    assert labelwood("train", data, "-o", plain).code == 0
    kept = ("--checkpoint", tmp_path / "done")
    assert labelwood("train", data, "-o", again, *kept).code == 0
    assert json.loads((tmp_path / "done" / "checkpoint.json").read_text())["seed"] == 0
    assert arrays_of(again) == arrays_of(plain)
    assert "holds a training already" in labelwood("train", data, "-o", again, *kept).complaint(1)
    assert labelwood("train", data, "-o", again, *kept, "--resume").code == 0
    assert arrays_of(again) == arrays_of(plain)
    assert "--resume has no effect: it needs --checkpoint" in labelwood(
        "train", data, "-o", again, "--resume"
    ).complaint(2)


def test_a_directory_trains_and_predicts_as_its_source(labelwood, data, tmp_path):
    facts = labelwood("convert", data, tmp_path / "rows.lw", "--json").json
    assert facts["bytes"] == sum(file.stat().st_size for file in (tmp_path / "rows.lw").iterdir())
    np.testing.assert_array_equal(load(tmp_path / "rows.lw").X.data, load(data).X.data)
    models = tmp_path / "one", tmp_path / "other"
    assert labelwood("train", data, "-o", models[0]).code == 0
    assert labelwood("train", tmp_path / "rows.lw", "-o", models[1]).code == 0
    assert arrays_of(models[0]) == arrays_of(models[1])
    assert labelwood("predict", models[0], data).out == labelwood("predict", models[0], tmp_path / "rows.lw").out


def test_an_executor_must_be_known(labelwood, data, tmp_path):
    told = labelwood("train", data, "-o", tmp_path / "model", "--executor", "slurm").complaint(2)
    assert "--executor takes threads, ray, or ray://host:port" in told
    assert labelwood("train", data, "-o", tmp_path / "model", "--executor", "threads").code == 0
    local = labelwood("predict", tmp_path / "model", data)
    assert labelwood("predict", tmp_path / "model", data, "--executor", "threads").out == local.out


def test_ray_that_is_not_there_is_told(labelwood, data, tmp_path):
    try:
        import ray  # noqa: F401
    except ImportError:
        told = labelwood("train", data, "-o", tmp_path / "model", "--executor", "ray").complaint(1)
        assert "pip install 'labelwood[ray]'" in told
    else:
        pytest.skip("Ray is installed")
