"""Label trees: a leaf is a label."""
