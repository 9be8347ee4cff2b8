"""The service's log, snapshots and models."""
