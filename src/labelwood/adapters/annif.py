"""Labelwood in Annif: three backends, and ``labelwood-annif``, which is ``annif`` with them.

- ``backend=labelwood``: LinearTree over the tf-idf vectors that Annif's other linear backends use;
- ``backend=labelwood_online``: OnlineTree over hashed words, so that ``annif learn`` adds new words and subjects;
- ``backend=labelwood_living``: LivingTree over hashed words, which learns and has the quality of a batch.

The project's configuration may set every parameter of the method by its name, like ``n_trees=3``.
"""

from __future__ import annotations

from typing import Any

from labelwood.adapters._required import required

BACKENDS = {
    "labelwood": "LinearTreeBackend",
    "labelwood_online": "OnlineTreeBackend",
    "labelwood_living": "LivingTreeBackend",
}


def register() -> None:
    """Register the backends with Annif, in this process."""
    known = vars(required("annif.backend", extra="annif"))["_backend_fns"]  # Annif has no public registry
    for name, attribute in BACKENDS.items():
        known[name] = _loader(attribute)


def main() -> None:
    """The command ``labelwood-annif``: Annif's command line, with Labelwood's backends."""
    try:
        register()
    except ImportError as error:
        raise SystemExit(f"labelwood-annif: {error}") from None
    required("annif.cli", extra="annif").cli()


def _loader(attribute: str) -> Any:
    """The function that Annif calls to import a backend when a project uses it."""

    def load() -> Any:
        from labelwood.adapters import _annif  # noqa: PLC0415 - its classes are Annif's

        return getattr(_annif, attribute)

    return load
