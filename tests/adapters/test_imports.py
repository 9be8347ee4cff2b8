"""The adapters import their tools on first use only, and name a package that is missing."""

import subprocess
import sys

import pytest

TOOLS = ("river", "annif", "mlflow", "huggingface_hub")
USES = {
    "river": "from labelwood.adapters.river import OnlineTreeClassifier",
    "annif": "from labelwood.adapters.annif import main; main()",
    "mlflow": "from labelwood.adapters.mlflow import save_model; save_model('x', 'y')",
    "hub": "from labelwood.adapters.hub import pull; pull('a/b')",
}


def run(script):
    return subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=120)


def test_importing_the_adapters_imports_no_tool():
    done = run(
        "import sys\n"
        "from labelwood.adapters import annif, hub, mlflow, river\n"
        f"loaded = set({TOOLS}) & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", USES)
def test_a_missing_package_is_named(extra):
    package = "huggingface_hub" if extra == "hub" else extra
    done = run(f"import sys; sys.modules[{package!r}] = None\n{USES[extra]}")
    assert done.returncode == 1
    kind = "labelwood-annif" if extra == "annif" else "ImportError"  # the command of Annif prints one line
    told = f"{kind}: labelwood.adapters: {package} is needed; pip install 'labelwood[{extra}]'"
    assert done.stderr.splitlines()[-1] == told


def test_a_missing_dependency_of_a_tool_is_not_hidden(tmp_path):
    (tmp_path / "toolbox.py").write_text("import what_it_needs\n")
    done = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from labelwood.adapters._required import required\n"
        "required('toolbox', extra='tools')"
    )
    assert "No module named 'what_it_needs'" in done.stderr


def test_an_unknown_attribute_of_river_raises():
    from labelwood.adapters import river

    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = river.Nonsense
