"""The examples of docs/integrations.md run in their own process and folder, and print what the page shows."""

import re

import pytest
from pages import ROOT, blocks, run_python

PAGE = ROOT / "docs" / "integrations.md"
NEEDS = {
    "scikit-learn": [],
    "pandas and polars": ["pandas", "polars"],
    "river": ["river"],
    "Annif": ["annif"],
    "MLflow": ["mlflow", "pandas"],
    "Hugging Face Hub": ["huggingface_hub"],
}


def sections() -> dict[str, str]:
    _, *parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def block(section: str, language: str) -> str:
    (found,) = blocks(section, language)
    return found


def test_every_section_is_tested():
    assert list(sections()) == list(NEEDS)


def skip_where_absent(name):
    for package in NEEDS[name]:
        pytest.importorskip(package, reason=f"{package} is not installed; use make test-adapters")


@pytest.mark.parametrize("name", [name for name in NEEDS if name != "Annif"])
def test_python_example(name, tmp_path, tiny_hub):
    skip_where_absent(name)
    section = sections()[name]
    printed = run_python(
        block(section, "python"),
        tmp_path,
        HF_ENDPOINT=tiny_hub.address,
        HF_HOME=str(tmp_path / "hub"),
        HF_TOKEN="hf_any",
        MLFLOW_ALLOW_FILE_STORE="true",
        MLFLOW_TRACKING_URI=(tmp_path / "runs").as_uri(),
    )
    assert printed == block(section, "text")


def test_annif_example(tmp_path, annif_folder):
    skip_where_absent("Annif")
    section = sections()["Annif"]
    place = annif_folder(tmp_path)
    (tmp_path / "projects.cfg").write_text(block(section, "ini"))
    done = place.run(["sh", "-e", "-c", block(section, "sh")])
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\t(\w+)\t", done.stdout) == ["cats", "llamas"]
    assert "NDCG:" in (tmp_path / "measures.txt").read_text()
