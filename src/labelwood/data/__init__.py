"""Read and write data sets, that is the features and the labels of the same rows, in four formats.

- ``xmc``: the text format of the Extreme Classification Repository: one row ``l1,l2 f:v f:v`` per line, ids from 0,
  after an optional header ``rows features labels``.
- ``svmlight``: the multi-label text format of scikit-learn.
- ``npz``: the arrays of both matrices in one NumPy archive; the fastest to load.
- ``lw``: a directory of mapped arrays, for data that may be larger than memory.

Text files may be compressed (``.gz``, ``.bz2``, ``.xz``).

:func:`load_text` reads texts with label names: CSV, TSV, JSON lines, Parquet, Annif, fastText, one text per line.
:func:`load_label_texts` reads names and descriptions of labels. :func:`load_vectors` maps a file of vectors.
"""

from labelwood.data.dataset import Dataset
from labelwood.data.label_texts import load_label_texts
from labelwood.data.load_save import convert, load, save
from labelwood.data.text_tables import Columns
from labelwood.data.texts import STANDARD_INPUT, TEXT_FORMATS, TextDataset, holds_text, load_text, text_format
from labelwood.data.vector_file import load_vectors

__all__ = [
    "STANDARD_INPUT",
    "TEXT_FORMATS",
    "Columns",
    "Dataset",
    "TextDataset",
    "convert",
    "holds_text",
    "load",
    "load_label_texts",
    "load_text",
    "load_vectors",
    "save",
    "text_format",
]
