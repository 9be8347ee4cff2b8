"""The encoders by name, and transformers of scikit-learn as encoders."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from labelwood.errors import LabelwoodError
from labelwood.text.encoder import TextEncoder
from labelwood.text.hashing import HashingEncoder
from labelwood.text.tfidf import TfidfEncoder

ENCODERS: Mapping[str, type[TextEncoder]] = MappingProxyType(
    {cls.encoder_name: cls for cls in (TfidfEncoder, HashingEncoder)}
)


def as_encoder(encoder: Any) -> TextEncoder:
    """The encoder itself if it is of this library, else the transformer as one."""
    if isinstance(encoder, TextEncoder):
        return encoder
    if isinstance(encoder, type) or not (hasattr(encoder, "fit") and hasattr(encoder, "transform")):
        raise LabelwoodError(
            "TextClassifier: encoder must be a TfidfEncoder, a HashingEncoder or a transformer of scikit-learn; "
            f"got {encoder!r}"
        )
    from labelwood.text.transformer import TransformerEncoder  # noqa: PLC0415 - imports scikit-learn's vectorizers

    return TransformerEncoder(encoder)
