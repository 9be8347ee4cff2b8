"""Data that every test of executors trains on."""

import numpy as np
import pytest
import scipy.sparse as sp


class Backwards:
    """Runs the units in reverse order, on copies of their arrays that nobody may write to."""

    def __init__(self):
        self.names = []

    def map(self, units, shared, n_threads, progress):
        import pickle

        from labelwood.executors.work_unit import perform

        for unit in reversed(units):
            self.names.append(unit.name)
            sent, held = pickle.loads(pickle.dumps((unit, dict(shared))))
            for array in (*held.values(), *sent.own.values()):
                array.flags.writeable = False
            yield unit, pickle.loads(pickle.dumps(perform(sent, held, 1, None)))


@pytest.fixture
def backwards():
    return Backwards()


@pytest.fixture(scope="session")
def many_labels():
    """Rows of some of 300 labels, rare ones among them, and some rows without any."""
    rng = np.random.default_rng(5)
    n_rows, n_features, n_labels = 1500, 400, 300
    chance = 1 / np.arange(2, n_labels + 2)
    Y = (rng.random((n_rows, n_labels)) < 3 * chance / chance.sum()).astype(np.float32)
    words = rng.random((n_labels, n_features)) < 0.03
    X = (Y @ words) * rng.random((n_rows, n_features)) + (rng.random((n_rows, n_features)) < 0.01)
    return sp.csr_array(X.astype(np.float32)), sp.csr_array(Y)


def model_bytes(model):
    """Everything of a model that is saved, but the times of training."""
    manifest, arrays = model.to_saved()
    facts = {name: value for name, value in manifest.items() if name != "trained"}
    for member in facts.get("facts", {}).get("members", ()):
        member.pop("trained", None)
    seed = manifest["trained"]["seed"]
    return repr(facts), seed, {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


@pytest.fixture
def saved():
    return model_bytes
