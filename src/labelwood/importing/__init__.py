"""Models that other tools trained: read from their files and turned into models of this library.

The files are read by the code here alone. The other tool need not be installed, and nothing in a file is run.
"""

from labelwood.importing.formats import FORMATS, from_sklearn, import_model

__all__ = ["FORMATS", "from_sklearn", "import_model"]
