"""User input, read and checked."""
