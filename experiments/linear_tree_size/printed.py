"""The tree of the size paper as printed, as we run it, on Bibtex and Delicious.

python -m experiments.linear_tree_size.printed
"""

from experiments.as_printed import write

if __name__ == "__main__":
    write(__doc__, "linear_tree_size", "linear-tree", {})
