"""Reading and writing data sets: features and labels of the same rows, in four formats.

- ``xmc``: the text format of the extreme classification repository. ``l1,l2 f:v f:v`` a row, ids from 0,
  after an optional header ``rows features labels``.
- ``svmlight``: the multi-label text format that scikit-learn reads and writes.
- ``npz``: the arrays of both matrices in one NumPy archive, the fastest to load.
- ``lw``: a directory of arrays that are mapped, for data that may be larger than memory.

Text files may be compressed (``.gz``, ``.bz2``, ``.xz``).

:func:`load_text` reads texts and label names instead: CSV, TSV, JSON lines, Parquet, Annif, fastText, plain lines.
"""

from labelwood.data.dataset import Dataset
from labelwood.data.load_save import convert, load, save
from labelwood.data.texts import TEXT_FORMATS, TextDataset, holds_text, load_text

__all__ = ["TEXT_FORMATS", "Dataset", "TextDataset", "convert", "holds_text", "load", "load_text", "save"]
