"""Controlled vocabularies: concepts with URIs, names in several languages, and a hierarchy.

:func:`load_vocabulary` reads SKOS (Turtle, RDF/XML, JSON-LD, N-Triples) and tables (TSV, CSV, also those of Annif);
:func:`save_vocabulary` writes them. A :class:`Vocabulary` is a value of packed arrays that a model keeps.
"""

from labelwood.vocabulary.concept import Concept
from labelwood.vocabulary.files import FORMATS, load_vocabulary, read_vocabulary, save_vocabulary
from labelwood.vocabulary.vocabulary import Vocabulary

__all__ = ["FORMATS", "Concept", "Vocabulary", "load_vocabulary", "read_vocabulary", "save_vocabulary"]
