"""CRAFTML as printed, as we run it, and as published, on Bibtex and Delicious.

python -m experiments.craftml.printed
"""

from experiments.as_printed import write

PUBLISHED = {"bibtex/xmc_split0": (65.15, 39.83, 28.99), "delicious/xmc_split0": (70.26, 63.98, 59.00)}

if __name__ == "__main__":
    write(__doc__, "craftml", "craft-forest", PUBLISHED)
