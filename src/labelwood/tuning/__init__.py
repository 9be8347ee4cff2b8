"""The choice of a method and its parameters by trial, within a time budget."""

from labelwood.tuning.encodings import Texts, as_flags
from labelwood.tuning.successive_halving import CANDIDATES, Trial, Tuned, tune

__all__ = ["CANDIDATES", "Texts", "Trial", "Tuned", "as_flags", "tune"]
