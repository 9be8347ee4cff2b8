"""The service's side towards the network."""
