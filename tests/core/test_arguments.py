"""No binding converts an argument: a number out of range, or an array of another type, is an error.

The arguments are those of real calls: small models are trained and used while every kernel notes what it is given.
Then each argument of each call is replaced by others that are wrong.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from labelwood import (
    CraftForest,
    FastXmlForest,
    GraphForest,
    HashingEncoder,
    LdsmForest,
    LinearTree,
    OnlineTree,
    Ranker,
    TfidfEncoder,
    _core,
    label_neighbors,
)
from labelwood.data import Dataset, load, save
from labelwood.packed.tree_shape import flat_tree
from labelwood.sparse import CSR, from_lists
from labelwood.validation.label_texts import LabelVectors

TEXTS = ["one two three", "two three four", "four five", "one five six"]
NO_ARGUMENTS = {
    "shape",
    "isa",
    "give_back",
    "unicode_properties",
    "facts",
    "records",
    "state",
    "seen",
    "growing",
    "n_blocks",
    "ModelLock",
}
ANY_WIDTH = {"check_csr", "OnlineTree.learn", "OnlineTree.search", "OnlineTree.progressive", "OnlineTree.knows_any"}
ANY_WIDTH |= {"NearestRows.add", "NearestRows.search", "NearestRows.search_then_add"}
DTYPES = (np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64)


def bindings():
    """Every function and method of the module that takes arguments, by name, with its owner."""
    found = {}
    for name, item in vars(_core).items():
        if isinstance(item, type):
            found[name] = (_core, name)
            methods = [method for method, made in vars(item).items() if method[:2] != "__" and is_function(made)]
            found |= {f"{name}.{method}": (item, method) for method in methods}
        elif callable(item):
            found[name] = (_core, name)
    return {name: place for name, place in found.items() if place[1] not in NO_ARGUMENTS}


def is_function(made):
    return callable(made) and not isinstance(made, type)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """One real call of every binding: the function, its arguments and its named arguments."""
    noted = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, (owner, attribute) in bindings().items():
            function = getattr(owner, attribute)

            def note(*args, _name=name, _function=function, **named):
                noted[_name] = (_function, args, named)
                return _function(*args, **named)

            patch.setattr(owner, attribute, note)
        use_everything(tmp_path_factory.mktemp("calls"), noted)
    return noted


def use_everything(folder, noted):
    random = np.random.default_rng(0)
    X = (random.random((30, 12)) * (random.random((30, 12)) < 0.5)).astype(np.float32)
    Y = from_lists([[i % 5, 5 + i % 3] for i in range(30)], 8)
    for model in (
        LinearTree(arity=2, max_leaf=2, n_jobs=1),
        CraftForest(n_trees=2, rerank=True, row_share=0.9, n_jobs=1, leaf_size=2),
        GraphForest(n_trees=2, n_jobs=1),
        FastXmlForest(n_trees=2, n_jobs=1, propensity=True),
        LdsmForest(n_trees=2, n_jobs=1),
        LinearTree(arity=2, max_leaf=2, n_trees=2, n_jobs=1),
    ):
        model.fit(X, Y)
        model.predict_topk(X, k=2)
        model.explain(X[:1], k=1)
        if isinstance(model, LinearTree):
            model.estimate(X, Y)
            model.save(folder / "tree")
            LinearTree.load(folder / "tree")
    names = [[f"label {label}" for label in Y.indices[Y.indptr[row] : Y.indptr[row + 1]]] for row in range(Y.n_rows)]
    vectors = LabelVectors([f"label {label}" for label in range(8)], from_lists([[label] for label in range(8)], 12))
    ranker = Ranker(["linear-tree"], n_jobs=1, n_boosted=2).fit(np.tile(X, (4, 1)), names * 4, label_vectors=vectors)
    ranker.predict_topk(X, k=2)
    ranker.second_look_.trees.sums(np.zeros((1, len(ranker.second_look_.feature_groups())), np.float32))
    _core.vote_of_similar_vectors(X, X.astype(np.float16).view(np.uint16), Y, 3, 2, 1, None)
    online = OnlineTree(n_jobs=1, warm_share=0.5).fit(X, Y)
    online.partial_fit(X, Y).progressive(X, Y)
    online.predict_topk(X, k=2)
    online.explain(X[:1], k=1)
    online.labels.retire(1)
    online.freeze().predict_topk(X, k=2)
    online.save(folder / "online")
    OnlineTree.load(folder / "online")
    OnlineTree(n_jobs=1).learn_tree(flat_tree(8), X, Y).partial_fit(X, Y)
    online._tree.classifier(1, False)
    nearest = _core.NearestRows(3, 100)
    nearest.add(Y, Y)
    nearest.search_then_add(Y, Y, 2)
    nearest.search(Y, 2, 1, None)
    for encoder in (TfidfEncoder(n_jobs=1), HashingEncoder(n_jobs=1)):
        encoder.fit(TEXTS)
        encoder.transform(TEXTS)
    TfidfEncoder(fields={"title": 2.0}, n_jobs=1).fit(TEXTS)
    utf8, offsets, cut_options = (noted["hash_terms"][1][place] for place in range(3))
    kept = ("unit", "shortest", "longest", "min_length", "lowercase")
    _core.read_words(utf8, offsets, {name: cut_options[name] for name in kept}, np.zeros(4, np.uint8), 1, 1)
    label_neighbors(Y)
    save(folder / "a.txt", Dataset(Y, Y))
    load(folder / "a.txt")
    save(folder / "a.lw", Dataset(Y, Y))
    load(folder / "a.lw").X.take(np.array([1]))
    _core.lower_text(np.frombuffer(b"One", np.uint8))
    _core.cbor_tokens(np.frombuffer(b"\x01", np.uint8))
    Y.unit_rows()
    _core.unit_factors(Y)
    _core.vector_lengths(Y)
    _core.keep_largest(Y.indptr, Y.data, 1)
    options = noted["grow_graph_forest"][1][2]
    ptr, neighbors, _ = _core.label_graph(
        Y, {name: options[name] for name in ("graph", "n_neighbors", "threshold", "fill")}
    )
    cut = (
        "n_negatives",
        "match_negatives",
        "epochs",
        "l1",
        "learning_rate",
        "beta",
        "tolerance",
        "start",
        "feature_rows",
    )
    _core.graph_cut(Y, ptr, neighbors, {name: options[name] for name in cut}, 0)


def test_every_binding_is_called(calls):
    assert bindings().keys() - calls.keys() == set()


@pytest.mark.parametrize("name", bindings())
def test_a_wrong_argument_is_an_error(calls, name):
    function, args, named = calls[name]
    n_tried = 0
    for place, given in [*enumerate(args), *named.items()]:
        for wrong in wrong_values(given, any_width=name in ANY_WIDTH):
            positional, others = list(args), dict(named)
            if isinstance(place, int):
                positional[place] = wrong
            else:
                others[place] = wrong
            assert refuses(function, positional, others), f"argument {place}: {shown(wrong)}, not {shown(given)}"
            n_tried += 1
    assert n_tried


def refuses(function, positional, named):
    try:
        function(*positional, **named)
    except TypeError:
        return True
    return False


def shown(value):
    return f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else repr(value)[:300]


def wrong_values(given, *, any_width):
    if isinstance(given, bool):
        yield from (1, "yes", None)
    elif isinstance(given, int):
        yield from (float(given), np.float64(given), str(given), None, True, 2**64, -(2**63) - 1)
    elif isinstance(given, float):
        yield from (str(given), None, 1j)
    elif isinstance(given, np.ndarray):
        yield from wrong_arrays(given)
    elif isinstance(given, CSR):
        is_pattern = (given.data == 1).all()  # the values of a matrix of labels are not read
        for part in ("indptr", "indices", *(() if is_pattern else ("data",))):
            for wrong in wrong_arrays(getattr(given, part)):
                if not (any_width and part == "indices" and wrong.dtype == np.int64):
                    yield replace(given, **{part: wrong})
        yield from (replace(given, n_cols=wrong) for wrong in (1.5, "3", None, True, 2**63))
        yield None
    elif dataclasses.is_dataclass(given):
        for part in ("child_ptr", "label"):
            yield from (replace(given, **{part: wrong}) for wrong in wrong_arrays(getattr(given, part)))
    elif isinstance(given, dict):
        for key, value in given.items():
            wrong = value.astype(np.complex64) if isinstance(value, np.ndarray) else object()
            yield {**given, key: wrong}
            if isinstance(value, int):
                yield from ({**given, key: wrong} for wrong in (2**64, str(value), value + 0.5))


def wrong_arrays(array):
    yield from (array.astype(dtype) for dtype in DTYPES if dtype != array.dtype)
    yield array[None]
    if array.size > 1:
        yield np.repeat(array, 2, axis=-1)[..., ::2]  # not contiguous


def test_column_ids_of_64_bits_are_never_narrowed():
    """2^32 + 1 would become 1."""
    wide = CSR(np.array([0, 1]), np.array([2**32 + 1]), np.ones(1, np.float32), 2**33)
    assert wide.check() is wide
    model = OnlineTree(n_jobs=1).partial_fit([{1: 1.0}, {2: 1.0}], [["a"], ["b"]])
    for feature in (2**31 - 1, 2**31, 2**32 + 1, 2**53):
        rows = CSR(np.array([0, 1]), np.array([feature]), np.ones(1, np.float32), feature + 1)
        model.predict_topk(rows, k=1)
        model.partial_fit(rows, [[f"label of {feature}"]])
        assert model.predict_topk(rows, k=1)[0][0, 0] == f"label of {feature}"
