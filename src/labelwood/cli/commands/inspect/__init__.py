"""Commands that inspect a model."""
