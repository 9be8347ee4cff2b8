"""Files: atomic writes, the model format, packed strings."""
