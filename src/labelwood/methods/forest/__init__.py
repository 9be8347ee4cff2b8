"""Instance forests: a leaf is a label distribution."""
