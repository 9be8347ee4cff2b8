"""The tables and figures of the five papers on the data at hand; `python -m experiments.run --list` names them all."""
