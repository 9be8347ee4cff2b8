"""The list of methods, and loading of saved models.

The command line, :func:`load` and the common tests iterate :data:`METHODS`; a new method is one more line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.estimator import TreeEstimator
from labelwood.methods.text_classifier import ENCODER, TextClassifier
from labelwood.storage.model_directory import read_model

_CLASSES = {
    "linear-tree": ("label_tree.linear_tree", "LinearTree"),
    "one-vs-rest": ("label_tree.linear_tree", "OneVsRest"),
    "online-tree": ("online.online_tree", "OnlineTree"),
    "online-forest": ("online.online_forest", "OnlineForest"),
    "living-tree": ("online.living_tree", "LivingTree"),
    "ldsm-forest": ("forest.ldsm_forest", "LdsmForest"),
    "craft-forest": ("forest.craft_forest", "CraftForest"),
    "graph-forest": ("forest.graph_forest", "GraphForest"),
    "fastxml-forest": ("forest.fastxml_forest", "FastXmlForest"),
    "blend": ("blend", "Blend"),
    "ranker": ("ranker", "Ranker"),
}


class _Methods(Mapping[str, type[TreeEstimator]]):
    """Method name to class; a class is imported on first use."""

    def __getitem__(self, name: str) -> type[TreeEstimator]:
        module, attribute = _CLASSES[name]
        found: type[TreeEstimator] = getattr(import_module(f"labelwood.methods.{module}"), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


METHODS: Mapping[str, type[TreeEstimator]] = _Methods()


def load(path: str | os.PathLike[str], *, verify: bool | None = None) -> TreeEstimator | TextClassifier:
    """Load a saved model of any method; a model of texts comes with its encoder.

    Arrays are memory-mapped. ``verify`` compares checksums, by default for models of at most 64 MB.
    """
    manifest, arrays = read_model(path, verify=verify)
    return model_from_saved(manifest, arrays, where=path)


def model_from_saved(
    manifest: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], *, where: str | os.PathLike[str]
) -> TreeEstimator | TextClassifier:
    """The model of any method from its manifest and arrays; ``where`` opens the error messages."""
    name = manifest.get("method")
    if not isinstance(name, str) or name not in METHODS:
        raise FormatError(f"{where}: unknown method {name!r}; this version has {', '.join(METHODS)}")
    if ENCODER in manifest:
        return TextClassifier.from_saved(METHODS[name], manifest, arrays, where=where)
    return METHODS[name].from_saved(manifest, arrays, where=where)
