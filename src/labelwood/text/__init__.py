"""Encoders turn texts into sparse vectors: tf-idf with a vocabulary, and hashing for streams with new words.

Both are scikit-learn transformers. Their output equals that of ``TfidfVectorizer`` and ``HashingVectorizer`` with the
same parameters; they are faster, because texts are lower-cased and cut into words natively, by the rules of
``str.lower`` and ``\\w``.
"""

from labelwood.text.encoder import TextEncoder
from labelwood.text.fields import Document
from labelwood.text.hashing import HashingEncoder
from labelwood.text.registry import ENCODERS, as_encoder
from labelwood.text.tfidf import TfidfEncoder
from labelwood.text.vectors import VectorEncoder
from labelwood.validation.embedded import Embedded

__all__ = [
    "ENCODERS",
    "Document",
    "Embedded",
    "HashingEncoder",
    "TextEncoder",
    "TfidfEncoder",
    "VectorEncoder",
    "as_encoder",
]
