"""People tag documents with the suggestions of a model: ``labelwood review``."""
