"""The twins: every compiled kernel in plain Python and NumPy, written to be read beside its paper.

A twin is the specification of its kernel. Tests check that the kernel computes the same. Paths of kernels are
relative to src/core.
"""
