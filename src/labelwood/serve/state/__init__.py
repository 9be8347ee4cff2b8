"""The state of the service: log, snapshots, current model."""
