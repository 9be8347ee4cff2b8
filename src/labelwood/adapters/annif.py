"""Labelwood in Annif: two backends, and ``labelwood-annif``, which is ``annif`` with them.

- ``backend=labelwood``: LinearTree over the tf-idf vectors that Annif's other linear backends use;
- ``backend=labelwood_online``: OnlineTree over hashed words, so that ``annif learn`` brings new words and subjects.

Every parameter of the method may stand in the project's configuration under its own name, like ``n_trees=3``.
"""

from __future__ import annotations

from typing import Any

from labelwood.adapters import required

BACKENDS = {"labelwood": "LinearTreeBackend", "labelwood_online": "OnlineTreeBackend"}


def register() -> None:
    """Make the backends known to Annif, in this process."""
    known = vars(required("annif.backend", extra="annif"))["_backend_fns"]  # Annif has no public registry
    for name, attribute in BACKENDS.items():
        known[name] = _loader(attribute)


def main() -> None:
    """The command ``labelwood-annif``: Annif's command line, with Labelwood's backends."""
    register()
    required("annif.cli", extra="annif").cli()


def _loader(attribute: str) -> Any:
    """What Annif keeps for a backend: a function that imports it when a project asks for it."""

    def load() -> Any:
        from labelwood.adapters import _annif  # noqa: PLC0415 - its classes are Annif's

        return getattr(_annif, attribute)

    return load
