"""Which rows people should label next."""
