"""Reading and writing data sets."""
