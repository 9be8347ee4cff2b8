"""Commands for data and the shell."""
