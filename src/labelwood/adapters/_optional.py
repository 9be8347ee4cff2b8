"""Importing the tools that the adapters are for."""

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
            raise  # the package is installed, but lacks something that it needs
        raise ImportError(
            f"labelwood.adapters: {package} is needed; pip install 'labelwood[{extra}]'", name=error.name
        ) from None
