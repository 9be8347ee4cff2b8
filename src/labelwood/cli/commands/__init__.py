"""One module per command, in four folders."""
