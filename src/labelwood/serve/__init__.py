"""The service: suggestions over HTTP, and learning that does not lose what it has acknowledged.

From the disk upwards: ``state.frames`` and ``state.log`` (the write-ahead log), ``state.records`` (what a record does
to a model), ``state.state_machine`` (the current model), ``state.recovery`` (the state from snapshot and log),
``state.store`` (a state directory open for writing), ``state.writer`` (the one thread that writes), ``service`` (what
the routes do), ``http.app`` (the routes), ``http.gate`` (the checks before them), ``processes`` (one process or
several).
"""
