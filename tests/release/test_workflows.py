"""What the workflows name exists: jobs, steps, matrices, files, targets of make; their scripts pass shellcheck."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is installed by make check-release")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MAKEFILES = [ROOT / "Makefile", *(ROOT / "tools").glob("*.mk")]


def jobs_of(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text())["jobs"]


def scripts_of(path: Path) -> list[str]:
    return [step["run"] for job in jobs_of(path).values() for step in job.get("steps", ()) if "run" in step]


def names_of(job: dict) -> set[str]:
    """What an expression in this job may name of its matrix and its steps."""
    matrix = job.get("strategy", {}).get("matrix", {})
    keys = {key for key in matrix if key != "include"} | {key for row in matrix.get("include", ()) for key in row}
    ids = {step["id"] for step in job.get("steps", ()) if "id" in step}
    return {f"matrix.{key}" for key in keys} | {f"steps.{name}" for name in ids}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_what_exists(path):
    jobs = jobs_of(path)
    for job in jobs.values():
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(jobs)
        if job.get("uses", "").startswith("./"):
            assert (ROOT / job["uses"]).is_file()
        used = set(re.findall(r"\b((?:matrix|steps)\.\w+)", " ".join(re.findall(r"\$\{\{(.*?)\}\}", str(job)))))
        assert used <= names_of(job)


def test_the_workflows_make_targets_that_exist():
    text = "\n".join(path.read_text() for path in MAKEFILES)
    targets = set(re.findall(r"^([\w-]+):(?!=)", text, re.MULTILINE))
    lines = [line for path in WORKFLOWS for script in scripts_of(path) for line in script.splitlines()]
    made = {word for line in lines if line.startswith("make ") for word in line.split()[1:] if "=" not in word}
    assert made
    assert made <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_scripts_pass_shellcheck(path):
    shellcheck = Path(sys.executable).with_name("shellcheck")
    found = str(shellcheck) if shellcheck.exists() else shutil.which("shellcheck")
    if found is None:
        pytest.skip("shellcheck is installed by make check-release")
    for script in scripts_of(path):
        plain = re.sub(r"\$\{\{.*?\}\}", "value", script)
        done = subprocess.run([found, "--shell=bash", "-"], input=plain, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}"
