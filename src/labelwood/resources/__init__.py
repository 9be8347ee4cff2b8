"""Bytes, memory and seconds of a training before it starts."""
