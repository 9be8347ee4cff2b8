"""The HTTP side of the service: routes, limits, tokens."""
