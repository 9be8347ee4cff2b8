"""The scripts of the gallery: ten, each with a title, text and a plot; ``make docs`` runs them."""

from pages import ROOT


def test_every_script_is_listed_and_has_a_plot():
    source = (ROOT / "tools" / "gallery.py").read_text()
    scripts = sorted(path.stem for path in (ROOT / "docs/gallery").glob("*.py") if path.stem != "articles")
    assert len(scripts) == 10
    for name in scripts:
        text = (ROOT / "docs/gallery" / f"{name}.py").read_text()
        assert f'"{name}"' in source
        assert text.startswith("# %% [markdown]\n# # ")
        assert "plt.show()" in text
        compile(text, name, "exec")
