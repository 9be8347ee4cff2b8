"""Labelwood inside other people's tools: river, Annif, MLflow and the Hugging Face Hub.

Each module imports its tool when something of it is used, not before; ``pip install 'labelwood[river]'`` (``annif``,
``mlflow``, ``hub``) brings the tool. ``docs/integrations.md`` has an example of each. scikit-learn needs no adapter:
the methods are its estimators.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def required(module: str, *, extra: str) -> Any:
    """A module of another package, or an ImportError that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".", maxsplit=1)[0]
        if error.name is None or error.name.split(".", maxsplit=1)[0] != package:
            raise  # the package is there, but something that it needs is not
        raise ImportError(
            f"labelwood.adapters: {package} is needed; pip install 'labelwood[{extra}]'", name=error.name
        ) from None
