"""The service: suggestions over HTTP, and learning that loses nothing it has acknowledged.

From the disk upwards: ``wal`` (the log), ``replica`` (what a record does to a model), ``store`` (a state directory:
newest good snapshot and replay), ``views`` (what readers look at), ``learner`` (the one writer), ``service`` (what the
routes do), ``app`` (the routes), ``limits`` (the door before them), ``run`` (processes). ``docs/service.md`` tells what
it promises.
"""
