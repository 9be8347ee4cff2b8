"""The base of every method: scikit-learn's conventions outside, checked CSR inside."""

from labelwood.estimator.base import NJobs, RandomState, TreeEstimator, Verbose

__all__ = ["NJobs", "RandomState", "TreeEstimator", "Verbose"]
