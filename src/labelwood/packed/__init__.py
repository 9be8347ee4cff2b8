"""Trained models as flat arrays: what prediction reads."""
