"""Labelwood's backends of Annif beside omikuji, fastText and MLLM, through Annif's own commands."""
