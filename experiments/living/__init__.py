"""The stream of a living model against a batch and against learning online alone."""
