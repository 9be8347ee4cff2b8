"""Labelwood: extreme multi-label classification with trees."""

__version__ = "0.1.0"
