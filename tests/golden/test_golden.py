"""Golden models: models of every format version load, and predict as they did when they were written."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import labelwood
from labelwood import METHODS, FormatError
from labelwood.methods.text_classifier import estimator_of
from labelwood.storage.model_directory import FORMAT_VERSION

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
assert _spec is not None
assert _spec.loader is not None
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

FOLDERS = sorted(HERE.glob("format*"))
GOLDEN = [(folder, name) for folder in FOLDERS for name in json.loads((folder / "answers.json").read_text())]


def test_every_version_and_method_is_kept():
    assert [folder.name for folder in FOLDERS] == [f"format{v}" for v in range(1, FORMAT_VERSION + 1)]
    assert set(METHODS) <= {name for folder, name in GOLDEN if folder == FOLDERS[-1]}


@pytest.mark.parametrize(("folder", "name"), GOLDEN, ids=lambda part: getattr(part, "name", part))
def test_a_golden_model_predicts_as_when_written(folder, name):
    expected = json.loads((folder / "answers.json").read_text())[name]
    model = labelwood.load(folder / name, verify=True)
    labels, scores = model.predict_topk(make.inputs(name), make.K)
    assert labels.tolist() == expected["labels"]
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-5, atol=1e-7)  # instruction sets round differently
    if name.startswith("online") and not name.endswith("frozen"):
        estimator_of(model).partial_fit(make.inputs(name), [["new"]] * 6)
        assert "new" in model.classes_


def test_a_newer_format_is_refused_with_advice_to_upgrade(tmp_path):
    shutil.copytree(HERE / "format1" / "linear-tree", tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest |= {"format_version": FORMAT_VERSION + 1, "library_version": "7.8.9"}
    del manifest["sha256"]
    plain = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps({**manifest, "sha256": hashlib.sha256(plain).hexdigest()}))
    with pytest.raises(FormatError, match=rf"written by Labelwood 7\.8\.9 in format {FORMAT_VERSION + 1}; .* Upgrade"):
        labelwood.load(tmp_path / "model")
