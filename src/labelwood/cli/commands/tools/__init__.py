"""Commands for data files, the shell and a first look."""
