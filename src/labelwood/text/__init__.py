"""Texts to sparse vectors: tf-idf with a learnt vocabulary, and hashing for streams whose vocabulary grows.

Both are scikit-learn transformers whose output equals that of ``TfidfVectorizer`` and ``HashingVectorizer`` with the
same options, only faster: texts are lower-cased and cut into words natively, by the rules of ``str.lower`` and ``\\w``.
"""

from __future__ import annotations

from collections.abc import Mapping

from labelwood.text.encoder import TextEncoder
from labelwood.text.hashing import HashingEncoder
from labelwood.text.tfidf import TfidfEncoder

ENCODERS: Mapping[str, type[TextEncoder]] = {cls.encoder_name: cls for cls in (TfidfEncoder, HashingEncoder)}

__all__ = ["ENCODERS", "HashingEncoder", "TextEncoder", "TfidfEncoder"]
