"""The encoders by name, in a manifest, and transformers of scikit-learn as encoders."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.params import declared
from labelwood.text.encoder import TextEncoder
from labelwood.text.hashing import HashingEncoder
from labelwood.text.tfidf import TfidfEncoder
from labelwood.text.vectors import VectorEncoder

ENCODERS: Mapping[str, type[TextEncoder]] = MappingProxyType(
    {cls.encoder_name: cls for cls in (TfidfEncoder, HashingEncoder)}
)


def as_encoder(encoder: Any) -> TextEncoder:
    """The encoder itself if it is of this library, else the transformer, or the model of vectors, as one."""
    if isinstance(encoder, TextEncoder):
        return encoder
    is_transformer = hasattr(encoder, "fit") and hasattr(encoder, "transform")
    if isinstance(encoder, type) or not (is_transformer or hasattr(encoder, "encode")) or isinstance(encoder, str):
        raise LabelwoodError(
            "TextClassifier: encoder must be a TfidfEncoder, a HashingEncoder, a transformer of scikit-learn, or an "
            f"object with encode(texts), such as a SentenceTransformer; got {encoder!r}"
        )
    if not is_transformer:
        return VectorEncoder(encoder)
    from labelwood.text.transformer import TransformerEncoder  # noqa: PLC0415 - imports scikit-learn's vectorizers

    return TransformerEncoder(encoder)


def with_fields(encoder: Any, fields: Mapping[str, Any] | None) -> Any:
    """The encoder, told the fields of a record."""
    if fields is None:
        return encoder
    if not isinstance(encoder, TextEncoder):
        raise LabelwoodError(
            "TextClassifier: fields need a TfidfEncoder or a HashingEncoder as encoder; "
            f"got {type(encoder).__name__}, which takes one text per row"
        )
    return encoder.with_fields(fields)


def describe(encoder: TextEncoder) -> dict[str, Any]:
    """The name and the parameters of an encoder, as JSON has them."""
    return {"name": encoder.encoder_name, "parameters": encoder.described()}


def read_encoder(saved: Mapping[str, Any], learnt: Mapping[str, npt.NDArray[Any]]) -> TextEncoder:
    """The encoder that :func:`describe` described and whose state is ``learnt``."""
    return _unfitted(saved).restore(learnt)


def _unfitted(saved: Mapping[str, Any]) -> TextEncoder:
    name, parameters = saved["name"], saved["parameters"]
    if name == VectorEncoder.encoder_name:
        words = parameters["word_encoder"]
        inner = None if words is None else _unfitted(words)
        return VectorEncoder(word_encoder=inner, name=parameters["name"])
    if name not in ENCODERS:
        raise FormatError(f"unknown encoder {name!r}; this version has {', '.join(ENCODERS)}")
    cls = ENCODERS[name]
    tuples = {name for name, parameter in declared(cls).items() if tuple in parameter.kinds}
    given = {
        name: tuple(value) if name in tuples else value  # JSON has lists only
        for name, value in parameters.items()
    }
    return cls(**given)
