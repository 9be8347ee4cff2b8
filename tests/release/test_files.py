"""The files for others' tools say what the package says: versions, flags, the unit of the runbook."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from labelwood.cli.main import parser_of

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_file_has_the_version_of_the_package():
    version = PROJECT["version"]
    for name, pattern in {
        "CITATION.cff": r"^version: (\S+)$",
        "deploy/conda/recipe.yaml": r'version: "([^"]+)"',
        "deploy/kubernetes.yaml": r"image: labelwood:(\S+)",
    }.items():
        assert re.findall(pattern, (ROOT / name).read_text(), flags=re.MULTILINE) == [version], name


def test_conda_needs_what_the_package_needs():
    run = (DEPLOY / "conda/recipe.yaml").read_text().split("  run:")[1].split("tests:")[0]
    for requirement in PROJECT["dependencies"]:
        name, least = requirement.split(">=")
        assert f"{name} >={least}" in run


def test_the_image_is_built_from_what_the_build_reads():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    readme, licenses = PROJECT["readme"], PROJECT["license-files"]
    assert kept == {"CMakeLists.txt", "pyproject.toml", "src", readme, *licenses}
    assert all((ROOT / name).exists() for name in kept)


@pytest.mark.parametrize(
    ("name", "language"), [("labelwood.service", "ini"), ("prometheus.yml", "yaml"), ("labelwood.rules.yml", "yaml")]
)
def test_the_runbook_shows(name, language):
    assert f'```{language} title="{name}"\n{(DEPLOY / name).read_text()}```' in (ROOT / "docs/runbook.md").read_text()


def test_every_metric_of_the_rules_is_in_the_runbook():
    """The metrics of the runbook's table are those of the service; see tests/docs/test_promises.py."""
    used = set(re.findall(r"labelwood_\w+", (DEPLOY / "labelwood.rules.yml").read_text()))
    table = re.findall(r"^\| `(labelwood_\w+)`", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    assert used
    assert used <= set(table)


def test_the_recipe_renders_for_every_python():
    build = pytest.importorskip("rattler_build", reason="py-rattler-build is installed by make check-release")
    pythons = [text.rsplit(" ", 1)[1] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    variants = build.VariantConfig.from_yaml(f"python: {[f'{version}.*' for version in pythons]}")
    rendered = build.Stage0Recipe.from_file(DEPLOY / "conda/recipe.yaml").render(variants)
    assert [one.recipe.package.version for one in rendered] == [PROJECT["version"]] * len(pythons)


def commands() -> dict[str, list[str]]:
    """The words behind ``labelwood serve`` in every file that starts the service."""
    unit = re.search(r"^ExecStart=\S+ serve (.*)$", (DEPLOY / "labelwood.service").read_text(), re.MULTILINE)
    image = re.search(r"^CMD \[(.*)\]$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    pod = re.search(r"args:\n((?: +- \S+\n)+)", (DEPLOY / "kubernetes.yaml").read_text())
    assert unit is not None
    assert image is not None
    assert pod is not None
    return {
        "unit": shlex.split(unit[1]),
        "image": re.findall(r'"([^"]*)"', image[1]),
        "pod": re.findall(r"- (\S+)", pod[1]),
    }


def test_the_service_knows_the_flags():
    for words in commands().values():
        parsed = parser_of("serve", words).parse_args(words)
        assert parsed.model == "/srv/labelwood/model"
        assert parsed.log == "-"
        assert str(parsed.tokens).endswith("tokens")


def test_the_probes_ask_what_the_service_answers():
    source = (ROOT / "src/labelwood/serve/http/app.py").read_text()
    asked = {*re.findall(r"path: (/\w+)", (DEPLOY / "kubernetes.yaml").read_text()), "/healthz"}
    assert asked == {"/healthz", "/readyz"}
    assert all(f'"{path}"' in source for path in asked)
    assert "/healthz" in (DEPLOY / "Containerfile").read_text()
