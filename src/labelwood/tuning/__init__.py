"""The choice of a method and its parameters by trial, within a time budget."""

from labelwood.tuning.successive_halving import CANDIDATES, Trial, Tuned, tune

__all__ = ["CANDIDATES", "Trial", "Tuned", "tune"]
