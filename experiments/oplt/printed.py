"""OPLT as printed, as we run it, on Bibtex and Delicious.

python -m experiments.oplt.printed
"""

from experiments.as_printed import write

if __name__ == "__main__":
    write(__doc__, "oplt", "online-tree", {})
