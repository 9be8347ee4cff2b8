"""The methods and the one list of them."""

from labelwood.methods.registry import METHODS, load, model_from_saved

__all__ = ["METHODS", "load", "model_from_saved"]
