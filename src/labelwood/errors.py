"""The two errors that Labelwood raises for bad input.

Both are a ``ValueError``, as scikit-learn tools expect. A message has the form ``Class: name must be <rule>; got
<value>``, or names the file, the line and the token.
"""


class LabelwoodError(ValueError):
    """Bad parameters or bad data were passed to the library."""


class FormatError(LabelwoodError):
    """A file is malformed or damaged: data that cannot be parsed, a model that fails its checks."""
