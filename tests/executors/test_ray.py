"""Training and prediction on real Ray clusters of this machine; `make test-ray` brings Ray."""

import os
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from labelwood import CraftForest, LabelwoodError, LinearTree, OneVsRest, OnlineForest
from labelwood.executors import RayExecutor

ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray runs these tests")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Ray's own
    pytest.mark.skipif(os.environ.get("PYTEST_XDIST_WORKER") is not None, reason="a cluster needs the machine"),
]

MODELS = {
    "linear-tree": LinearTree(n_trees=3, arity=4, max_leaf=10),
    "one-vs-rest": OneVsRest(),
    "craft-forest": CraftForest(n_trees=5, max_leaf=20),
    "online-forest": OnlineForest(n_trees=3, tree={"max_leaf": 10}),
}
STORE = 100 * 2**20


@pytest.fixture(scope="module", params=[2, 3], ids=["two nodes", "three nodes"])
def cluster(request):
    """Nodes of one processor each; the head, where the tests are, does no work."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE})
    nodes.workers = [nodes.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(request.param - 1)]
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.mark.parametrize("name", MODELS)
def test_trains_and_predicts_as_threads_do(name, cluster, many_labels, saved):
    X, Y = many_labels
    model = clone(MODELS[name]).set_params(n_jobs=1)
    alone = saved(model.fit(X, Y))
    expected = model.predict_topk(X, 5)
    assert saved(model.fit(X, Y, executor="ray")) == alone
    for ours, theirs in zip(model.predict_topk(X, 5, executor="ray"), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_arrays_are_shared_not_copied(cluster, many_labels):
    """Two tasks of a node see the shared arrays at the same place of the same object, read-only."""

    @ray.remote(num_cpus=0.5)
    def look(shared):
        return shared["x"].flags.writeable, shared["x"].flags.owndata

    held = ray.put({"x": np.zeros(2**20)})
    assert ray.get([look.remote(held) for _ in range(4)]) == [(False, False)] * 4


def test_an_error_of_a_unit_arrives(cluster, many_labels):
    X, Y = many_labels
    few = Y.toarray()
    few[:1499] = 0
    model = OnlineForest(n_trees=2, tree={"warm_share": 1e-9})
    with pytest.raises(LabelwoodError, match="warm_share must cover"):
        model.fit(X, few, executor="ray")


def noted(function, folder):
    """The function, which leaves a file of its node's name before it works; a closure, so that Ray sends it along."""

    def work(*given):
        import time
        from pathlib import Path

        import ray

        Path(folder, ray.get_runtime_context().get_node_id()).touch()
        time.sleep(0.1)
        return function(*given)

    return work


@pytest.mark.parametrize("name", MODELS)
def test_a_node_killed_in_training_changes_nothing(name, cluster, many_labels, saved, tmp_path):
    """Its units, under way or finished but not yet fetched, are run again on the nodes that are left."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    model = clone(MODELS[name]).set_params(n_jobs=1)
    if name not in ("linear-tree", "one-vs-rest"):
        model.set_params(n_trees=12)
    alone = saved(model.fit(*many_labels))
    extra = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    there = NodeAffinitySchedulingStrategy(extra.node_id, soft=False)
    ray.get(ray.remote(lambda: 0).options(scheduling_strategy=there).remote())  # so that its worker is up

    class Killing(RayExecutor):
        killed = False

        def map(self, units, *given):
            marked = [replace(unit, function=noted(unit.function, tmp_path)) for unit in units]
            for found in super().map(marked, *given):
                if not self.killed and (tmp_path / extra.node_id).exists():
                    cluster.remove_node(extra, allow_graceful=False)
                    self.killed = True
                yield found

    executor = Killing()
    assert saved(model.fit(*many_labels, executor=executor)) == alone
    assert executor.killed, "the node had begun work"


def test_the_command_line_trains_and_predicts_on_the_cluster(cluster, many_labels, tmp_path):
    """Shards of a data set directory and of a directory of Parquet files, with Ray Data; the same lines as here."""
    import pyarrow
    import pyarrow.parquet

    from labelwood import TextClassifier
    from labelwood.cli import main
    from labelwood.data import Dataset, save
    from labelwood.sparse import from_scipy

    X, Y = many_labels
    save(tmp_path / "rows.lw", Dataset(from_scipy(X), from_scipy(Y)))
    for model, more in (("here", []), ("there", ["--executor", "ray"])):
        assert main(["train", str(tmp_path / "rows.lw"), "-o", str(tmp_path / model), *more]) == 0
    files = [{path.name: path.read_bytes() for path in (tmp_path / model).glob("*.npy")} for model in ("here", "there")]
    assert files[0] == files[1]
    shards = tmp_path / "shards.parquet"
    shards.mkdir()
    texts = [f"cats and {word} number {n}" for n, word in enumerate(["dogs", "law", "tax", "sea"] * 30)]
    for number in range(3):
        table = pyarrow.table({"text": texts[40 * number : 40 * number + 40]})
        pyarrow.parquet.write_table(table, shards / f"part{number}.parquet")
    TextClassifier().fit(texts, [[text.split()[2]] for text in texts]).save(tmp_path / "texts")
    for model, data in (("here", "rows.lw"), ("texts", "shards.parquet")):
        lines = []
        for more in ([], ["--executor", "ray"]):
            output = tmp_path / "lines.txt"
            words = [str(tmp_path / model), str(tmp_path / data), "-o", str(output)]
            assert main(["predict", *words, *more]) == 0
            lines.append(output.read_text())
        assert lines[0] == lines[1]
        assert lines[0].count("\n") == (1500 if model == "here" else 120)
