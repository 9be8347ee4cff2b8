"""Where the work of a training or of a batch prediction is done: threads, a Ray cluster, or joblib's workers.

A method divides its work into units (:class:`~labelwood.executors.work_unit.Unit`): pure functions from arrays to
arrays, such as one tree of a forest or one subtree of a label tree. The model is the same, byte for byte, wherever its
units ran, in whatever order, and however often they were repeated. By default nothing is divided: the threads of this
process do the work. The executor is no part of a model.

    model.fit(X, Y, executor="ray")                         # the cluster of RAY_ADDRESS, else one of this machine
    model.fit(X, Y, executor=RayExecutor("ray://head:10001"))
    with joblib.parallel_config("dask"): forest.fit(X, Y)   # forests follow joblib's configuration
"""

from labelwood.executors.backends import JoblibExecutor, RayExecutor, executor_of, joblib_executor
from labelwood.executors.checkpoint import Checkpoint, fingerprint
from labelwood.executors.work_unit import THREADS, Executor, Threads, Unit, complete, tree_ranges

__all__ = [
    "THREADS",
    "Checkpoint",
    "Executor",
    "JoblibExecutor",
    "RayExecutor",
    "Threads",
    "Unit",
    "complete",
    "executor_of",
    "fingerprint",
    "joblib_executor",
    "tree_ranges",
]
