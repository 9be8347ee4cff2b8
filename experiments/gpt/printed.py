"""GPT as printed, as we run it, on Bibtex and Delicious.

python -m experiments.gpt.printed
"""

from experiments.as_printed import write

if __name__ == "__main__":
    write(__doc__, "gpt", "graph-forest", {})
