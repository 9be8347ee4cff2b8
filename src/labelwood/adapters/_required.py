"""Import of the tools that the adapters need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def required(module: str, *, extra: str) -> Any:
    """Import a module of another package; if the package is not installed, the error says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".", maxsplit=1)[0]
        if error.name is None or error.name.split(".", maxsplit=1)[0] != package:
            raise  # the package is installed, but something that it needs is not
        raise ImportError(
            f"labelwood.adapters: {package} is needed; pip install 'labelwood[{extra}]'", name=error.name
        ) from None
