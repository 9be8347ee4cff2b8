"""The ranker and label texts."""
