"""LdSM as printed, as we run it, and as published, on Bibtex and Delicious.

    python -m experiments.ldsm.printed

The row of re-ranking is what search.py chose on held-out rows of Bibtex.
"""

from experiments.as_printed import write

PUBLISHED = {"bibtex/xmc_split0": (64.69, 39.70, 29.25), "delicious/xmc_split0": (71.91, 65.34, 60.24)}

SEARCHED = {"bibtex/xmc_split0": {"ours, re-ranked (chosen on held-out rows)": {"rerank": True}}}

if __name__ == "__main__":
    write(__doc__, "ldsm", "ldsm-forest", PUBLISHED, SEARCHED)
