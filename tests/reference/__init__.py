"""The twins: every compiled kernel once more in plain NumPy, written to be read beside the paper.

A twin is the specification. Tests demand that the kernel computes the same.
"""
