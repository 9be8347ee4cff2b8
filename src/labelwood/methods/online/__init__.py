"""Trees that learn from a stream."""
