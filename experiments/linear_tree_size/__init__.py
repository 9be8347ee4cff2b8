"""Exploring space efficiency in a tree-based linear model: Lin, Liu and Lin, 2024."""
