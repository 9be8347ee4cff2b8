"""Labelwood on the Hugging Face Hub: a model directory with a model card, pushed and pulled.

:func:`prepare` writes the files, without a network; :func:`push` uploads them; :func:`pull` fetches a model into the
Hub's cache, from which ``labelwood.load`` reads.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwood.adapters._required import required
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods import load
from labelwood.methods.text_classifier import ENCODER, TextClassifier
from labelwood.storage import model_directory
from labelwood.storage.atomic import atomic_directory

Model = TreeEstimator | TextClassifier | str | os.PathLike[str]

CARD = "README.md"


def model_card(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    data: str | None = None,
    metrics: Mapping[str, float] | None = None,
    license: str | None = None,
    language: str | Sequence[str] | None = None,
    title: str | None = None,
) -> str:
    """The model card of a model directory: training data, parameters, quality and size.

    ``name`` is the name of the repository, ``owner/name``. ``data`` describes the rows in a sentence. ``metrics`` is
    the result of ``metrics.evaluate``, as fractions. The Hub filters by ``license`` and ``language``.
    ``title`` is the heading, by default the name of the repository or of the directory.
    """
    manifest, _ = model_directory.read_model(path)
    is_text = ENCODER in manifest
    languages = [language] if isinstance(language, str) else list(language or ())
    head: dict[str, Any] = {
        "library_name": "labelwood",
        "pipeline_tag": "text-classification" if is_text else "tabular-classification",
        "tags": ["labelwood", "extreme-multi-label-classification", manifest["method"]],
    }
    head |= {"license": license} if license else {}
    head |= {"language": languages} if languages else {}
    return "\n".join(
        [
            "---",
            *(f"{key}: {json.dumps(value)}" for key, value in head.items()),  # JSON is YAML
            "---",
            "",
            f"# {title or (name or Path(path).name).rsplit('/', 1)[-1]}",
            "",
            f"A `{manifest['class']}` of [Labelwood](https://pypi.org/project/labelwood/) "
            f"{manifest['library_version']}, which suggests labels for {'texts' if is_text else 'vectors'}: "
            f"the few right ones out of {manifest['labels']['count']:,}.",
            "",
            *_section("Use", _usage(name or "owner/name", is_text=is_text)),
            *_section("Data", _facts(manifest, data)),
            *_section("Parameters", _parameters(manifest)),
            *_section("Metrics", _metrics(metrics)),
            *_section("Size", [f"{_size(manifest):,} bytes in {len(manifest['files'])} arrays."]),
        ]
    )


def prepare(model: Model, folder: str | os.PathLike[str], **card: Any) -> Path:
    """Write a model and its card to a new directory in the layout of the Hub; no network is needed.

    ``model`` is a fitted model or the directory it was saved to; ``card`` goes to :func:`model_card`.
    """
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise LabelwoodError(f"hub: folder must be new or empty; {target} is not")
    with atomic_directory(target) as prepared:
        if not isinstance(model, str | os.PathLike):
            model_directory.write_model_files(prepared, *model.to_saved())
        else:
            load(model, verify=True)  # a model that cannot be loaded is never published
            manifest, _ = model_directory.read_model(model)
            for file in (model_directory.MANIFEST, *(f"{name}.npy" for name in manifest["files"])):
                shutil.copyfile(Path(model) / file, prepared / file)
        title = (card.get("name") or target.name).rsplit("/", 1)[-1]
        (prepared / CARD).write_text(model_card(prepared, **{"title": title, **card}), encoding="utf-8")
    return target


def push(
    model: Model,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    revision: str | None = None,
    endpoint: str | None = None,
    message: str = "Labelwood model",
    **card: Any,
) -> str:
    """Upload a model and its card to ``repo_id``, which is created if needed; returns the address of the commit.

    Arrays of an earlier model that this one lacks are removed. ``endpoint`` is the address of another hub. ``card``
    goes to :func:`model_card`.
    """
    api = required("huggingface_hub", extra="hub").HfApi(endpoint=endpoint, token=token)
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(model, Path(folder) / "model", **{"name": repo_id, **card})
        api.create_repo(repo_id, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo_id, folder_path=prepared, revision=revision, commit_message=message, delete_patterns="*.npy"
        )
    return str(commit.commit_url)


def pull(
    repo_id: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
) -> Path:
    """Fetch a model into the Hub's cache, if needed; returns the directory, for ``labelwood.load``."""
    found = required("huggingface_hub", extra="hub").snapshot_download(
        repo_id,
        revision=revision,
        token=token,
        endpoint=endpoint,
        cache_dir=cache_dir,
        local_files_only=local_files_only,
        allow_patterns=[model_directory.MANIFEST, "*.npy", CARD],
    )
    return Path(found)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _usage(name: str, *, is_text: bool) -> list[str]:
    rows = '["a text"]' if is_text else "X"
    return [
        "```python",
        "import labelwood",
        "from labelwood.adapters import hub",
        "",
        f'model = labelwood.load(hub.pull("{name}"))',
        f"labels, scores = model.predict_topk({rows}, k=5)",
        "```",
    ]


def _facts(manifest: Mapping[str, Any], data: str | None) -> list[str]:
    trained = manifest["trained"]
    return [
        *([data, ""] if data else []),
        "| | |",
        "|---|---|",
        f"| rows | {trained['rows']:,} |",
        f"| features | {manifest['n_features']:,} |",
        f"| labels | {manifest['labels']['count']:,} |",
        f"| labels a row | {trained['label_entries'] / max(1, trained['rows']):.1f} |",
        f"| trained at | {trained['at']} |",
    ]


def _parameters(manifest: Mapping[str, Any]) -> list[str]:
    groups = {manifest.get("classifier", manifest["class"]): manifest["parameters"]}
    if ENCODER in manifest:
        groups[f"{manifest[ENCODER]['name']} encoder"] = manifest[ENCODER]["parameters"]
    rows = [f"| {group} | {name} | {value} |" for group, own in groups.items() for name, value in own.items()]
    return ["| of | parameter | value |", "|---|---|---|", *rows]


def _metrics(metrics: Mapping[str, float] | None) -> list[str]:
    if not metrics:
        return ["None were given."]
    rows = [f"| {name} | {100 * value:.2f} |" for name, value in metrics.items()]
    return ["| metric | percent |", "|---|---|", *rows]


def _size(manifest: Mapping[str, Any]) -> int:
    return sum(entry["bytes"] for entry in manifest["files"].values())
