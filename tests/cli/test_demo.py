"""The demo's data are real functions of this Python; the demo learns more from them than what is popular."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter

from labelwood.cli.commands.tools.demo_corpus import (
    MIN_CALLS,
    Function,
    assemble,
    describe,
    read_functions,
    source_files,
)

SOURCE = '''
import os

@decorated(with_call())
def loadAllFiles(folder, default=made_before()):
    """Read every file.

    Slowly.
    """
    def inner_helper():
        return os.listdir(folder)
    for name in inner_helper():
        yield open(name).read()

class Reader:
    async def read_HTTPHeader(self):
        await self.fetch()

    def silent(self):
        pass
'''


def test_functions_of_a_file(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(SOURCE)
    (tmp_path / "broken.py").write_text("def (:")
    found = read_functions([("sample", path), ("broken", tmp_path / "broken.py")])
    assert found == [
        Function("sample.loadAllFiles.inner_helper", "inner helper.", ("listdir",)),
        Function(
            "sample.loadAllFiles",
            "load All Files. Read every file.\n\nSlowly.",
            ("inner_helper", "listdir", "open", "read"),
        ),
        Function("sample.Reader.read_HTTPHeader", "read HTTP Header.", ("fetch",)),
    ]


def test_the_body_is_no_part_of_the_text():
    node = ast.parse(textwrap.dedent("def f():\n    'Says little.'\n    secret_call('secret text')")).body[0]
    assert isinstance(node, ast.FunctionDef)
    assert describe(node) == "f. Says little."


def test_rare_labels_and_copies_are_dropped():
    often = [Function(f"m.f{i}", f"text {i}", ("common", f"rare{i}")) for i in range(MIN_CALLS)]
    copies = [Function("copy.f0", "text 0", ("common", "rare0"))]
    alone = [Function("m.alone", "alone", ("once",))]
    corpus = assemble(often + copies + alone)
    everything = corpus.train + corpus.test
    assert sorted(function.origin for function in everything) == ["m.f0", "m.f1", "m.f2"]
    assert {function.labels for function in everything} == {("common",)}


def test_the_corpus_of_this_python_is_large_and_split_cleanly():
    functions = read_functions(source_files())
    corpus = assemble(functions, seed=0)
    assert corpus == assemble(functions, seed=0)
    assert corpus.test != assemble(functions, seed=1).test
    assert len(corpus.train) + len(corpus.test) > 15_000
    assert 0.17 < len(corpus.test) / (len(corpus.train) + len(corpus.test)) < 0.23
    assert not {function.text for function in corpus.train} & {function.text for function in corpus.test}
    counts = Counter(label for side in corpus for function in side for label in function.labels)
    assert min(counts.values()) >= MIN_CALLS
    assert len(counts) > 2_000
    assert all(function.labels for side in corpus for function in side)


def test_demo_beats_the_most_popular_labels(labelwood):
    shown = labelwood("demo", "--json").json
    assert shown["functions"]["train"] > 4 * shown["functions"]["test"] * 0.8
    for k in (1, 3, 5):
        assert shown[f"P@{k}"] > 1.5 * shown["most_popular"][f"P@{k}"]
    assert len(shown["examples"]) == 5
    for example in shown["examples"]:
        assert len(example["suggested"]) == 5
        assert len(example["true"]) >= 3
    assert list(shown["seconds"]) == ["read source", "encode text", "train", "predict"]
