"""The methods, and loading of saved models."""

from labelwood.methods.registry import METHODS, load, model_from_saved

__all__ = ["METHODS", "load", "model_from_saved"]
