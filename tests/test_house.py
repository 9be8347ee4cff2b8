"""The order of the source tree: small folders, short files, re-exports only in ``__init__.py``, stable public names."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import labelwood

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
PACKAGE = SRC / "labelwood"
SUFFIXES = {".py", ".hpp", ".cpp", ".html"}
WRITTEN = ("src", "tests", "experiments", "benchmarks", "tools", "fuzz")
MOST_FILES, MOST_LINES = 15, 400
GENERATED = {SRC / "core" / "text" / "unicode_tables.hpp"}  # a table of numbers, made from the Unicode database

# Every name that the documentation of version 0.1 lets users import, and the module it lets them import it from.
PUBLIC = {
    "labelwood": """
        METHODS Blend CraftForest Embedded FastXmlForest FormatError GraphForest HashingEncoder LabelwoodError
        LabelwoodWarning LdsmForest LinearTree LivingTree OneVsRest OnlineForest OnlineTree Ranker
        TextClassifier TfidfEncoder TreeEstimator VectorEncoder data label_neighbors load metrics __version__
    """,
    "labelwood.adapters": "hub",
    "labelwood.adapters.annif": "register main",
    "labelwood.adapters.hub": "model_card prepare pull push",
    "labelwood.adapters.mlflow": "log_model save_model",
    "labelwood.cli": "main",
    "labelwood.data": """
        TEXT_FORMATS Dataset TextDataset convert holds_text load load_label_texts load_text load_vectors save
    """,
    "labelwood.data.synth": "Shape synth synth_parts",
    "labelwood.errors": "FormatError LabelwoodError LabelwoodWarning",
    "labelwood.estimator": "NJobs RandomState TreeEstimator Verbose",
    "labelwood.executors": "Executor JoblibExecutor RayExecutor Threads Unit",
    "labelwood.explain": """
        Contribution Explanation Lost Member Missed Path Place Reason Reranked Rival Route Share Step Suggestion
    """,
    "labelwood.methods": "METHODS load",
    "labelwood.metrics": """
        BINS Interval Reliability Scorer bootstrap_intervals calibration_error coverage_at_k evaluate f1_at_k
        frequency_bins inverse_propensities label_counts macro_f1_at_k ndcg_at_k ndcg_of_all_at_k paired_intervals
        precision_at_k propensities psndcg_at_k psp_at_k recall_at_k reliability report_by_frequency scorer set_scores
    """,
    "labelwood.params": "Param",
    "labelwood.size": """
        PAPER_ENTRY_BYTES PAPER_WEIGHT_BYTES Level alpha_star children_on_path dense_tree_weights falling_depths
        fewest_on_path inner_levels largest_depth levels one_vs_rest_time paper_one_vs_rest_bytes paper_ratio
        paper_tree_bytes reduction_ratios size_ratio smaller_below smallest_alpha tree_time tree_time_by_depth
        tree_weights weights_of
    """,
    "labelwood.sparse": "CSR TopK from_lists from_scipy",
    "labelwood.text": "ENCODERS Embedded HashingEncoder TextEncoder TfidfEncoder VectorEncoder",
    "labelwood.vocabulary": "Concept Vocabulary load_vocabulary save_vocabulary",
    "labelwood.tuning": "CANDIDATES Trial Tuned tune",
}


def sources() -> list[Path]:
    return [path for path in SRC.rglob("*") if path.suffix in SUFFIXES]


def is_reexport(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets] == ["__all__"]
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom)


def test_no_folder_is_crowded():
    assert len(sources()) > 100, "the source tree was found"
    counts = Counter(path.parent for path in sources())
    assert {str(folder): count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_no_file_is_long():
    written = [path for name in WRITTEN for path in (ROOT / name).rglob("*") if path.suffix in SUFFIXES]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in written}
    assert {
        str(path): length for path, length in lengths.items() if length > MOST_LINES and path not in GENERATED
    } == {}


def test_packages_only_reexport():
    """All but ``labelwood`` itself, whose public names are imported when first used: that is code."""
    for path in PACKAGE.rglob("__init__.py"):
        if path == PACKAGE / "__init__.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{path} has no docstring"
        assert [ast.unparse(node) for node in tree.body if not is_reexport(node)] == [], path


def test_every_folder_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_stay_importable(module):
    exec(f"from {module} import {', '.join(PUBLIC[module].split())}", {})


def test_every_public_name_is_listed():
    assert sorted(labelwood.__all__) == sorted(set(PUBLIC["labelwood"].split()) - {"__version__"})


def test_the_river_adapter_is_where_its_page_says():
    assert import_module("labelwood.adapters.river").__all__ == ["OnlineTreeClassifier"]
