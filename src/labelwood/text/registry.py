"""The encoders by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from labelwood.text.encoder import TextEncoder
from labelwood.text.hashing import HashingEncoder
from labelwood.text.tfidf import TfidfEncoder

ENCODERS: Mapping[str, type[TextEncoder]] = MappingProxyType(
    {cls.encoder_name: cls for cls in (TfidfEncoder, HashingEncoder)}
)
