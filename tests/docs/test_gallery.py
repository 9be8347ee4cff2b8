"""The scripts of the gallery: ten, each with a title, text and a plot; ``make docs`` runs them."""

import importlib.util
import re

from pages import ROOT

SCRIPTS = sorted(path.stem for path in (ROOT / "docs/gallery").glob("*.py") if path.stem != "articles")


def test_every_script_has_a_title_and_a_plot():
    assert len(SCRIPTS) == 10
    for name in SCRIPTS:
        text = (ROOT / "docs/gallery" / f"{name}.py").read_text()
        assert text.startswith("# %% [markdown]\n# # ")
        assert "plt.show()" in text
        compile(text, name, "exec")


def test_the_overview_lists_every_script_with_its_plot():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "tools" / "gallery.py")
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    rows = re.findall(
        r"^\| \*\*\[[^]]+\]\((\w+)\.md\)\*\*<br>[^|]+\.? \| \[!.*\((\w+)-1\.png\)", gallery.overview(), re.MULTILINE
    )
    assert sorted(page for page, _ in rows) == SCRIPTS
    assert all(page == plot for page, plot in rows)
