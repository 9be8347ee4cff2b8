"""Commands that apply a model."""
