"""The two errors Labelwood raises on purpose.

Both are ``ValueError`` so that scikit-learn tools treat them as bad input. A message reads
``Class: name must be <rule>; got <value>`` or names the file, the line and the token it stumbled over.
"""


class LabelwoodError(ValueError):
    """Bad parameters or bad data handed to the library."""


class FormatError(LabelwoodError):
    """A file that is not what it should be: data that does not parse, a model that fails its checks."""
