"""Show the method, the parameters, the shape, the training and the file sizes of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelwood.cli.support.output import print_facts, print_json, print_table, shown_seconds
from labelwood.cli.support.parser import Options, Parser
from labelwood.methods import load
from labelwood.methods.text_classifier import estimator_of
from labelwood.resources.memory import shown_bytes
from labelwood.storage.model_directory import MANIFEST, read_model

EXAMPLES = ("labelwood info model", "labelwood info model --json")


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("model", metavar="MODEL", takes="the directory of a trained model")
    parser.json_flag()


def run(options: Options) -> int:
    """Load the model, which checks it, and print its facts."""
    folder = Path(options.model)
    manifest, _ = read_model(folder, verify=False)
    model = estimator_of(load(folder))
    files = {f"{name}.npy": entry for name, entry in manifest["files"].items()}
    total = sum(entry["bytes"] for entry in files.values()) + (folder / MANIFEST).stat().st_size
    facts: dict[str, Any] = {
        "model": str(folder),
        "method": manifest["method"],
        **{name: manifest[name] for name in ("encoder", "columns") if name in manifest},
        "features": model.n_features_in_,
        "labels": model.n_labels_,
        "label_names": manifest["labels"]["kind"],
        **({} if model.vocabulary_ is None else {"vocabulary": model.vocabulary_.describe()}),
        **model.describe(),
        "parameters": manifest["parameters"],
        "trained": manifest["trained"],
        "library_version": manifest["library_version"],
        "format_version": manifest["format_version"],
        "model_bytes": total,
        "files": files,
    }
    if options.json:
        print_json(facts)
    else:
        _print(facts)
    return 0


def _print(facts: dict[str, Any]) -> None:
    files, total = facts.pop("files"), facts.pop("model_bytes")
    trained = dict(facts.pop("trained"))
    seconds = trained.pop("seconds")
    parameters = facts.pop("parameters")
    print_facts(
        {
            **facts,
            "size": shown_bytes(total),
            "parameters": parameters,
            "trained": {**trained, "time": shown_seconds(seconds)},
        }
    )
    print()
    print_table(
        ["file", "type", "shape", "size"],
        [
            [name, entry["dtype"], " x ".join(map(str, entry["shape"])), shown_bytes(entry["bytes"])]
            for name, entry in sorted(files.items(), key=lambda item: -item[1]["bytes"])
        ],
    )
