"""The base of every method: scikit-learn's conventions outside, checked CSR inside."""

from labelwood.estimator.base import NJobs, Normalize, RandomState, TreeEstimator, Verbose
from labelwood.estimator.fitted import FittedModel

__all__ = ["FittedModel", "NJobs", "Normalize", "RandomState", "TreeEstimator", "Verbose"]
