"""The documentation site in headless Chromium, after ``make docs``: install, dark mode, tables that fit."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE, PICTURES = ROOT / "build" / "site", ROOT / "out"
PAGES = ("index", "methods/linear_tree", "cli", "metrics", "results", "api", "runbook")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright; see make test-browser")
    chromium = shutil.which("chromium")
    if chromium is None or not (SITE / "index.html").is_file():
        pytest.skip("no chromium, or no site: run make docs first")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (375, "light")])
def test_a_page_fits(browser, name, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto((SITE / f"{name}.html").as_uri())
    page.wait_for_load_state()
    wide = page.evaluate(
        """() => [...document.querySelectorAll('article table')].filter(table => {
            for (let up = table; up.tagName !== 'ARTICLE'; up = up.parentElement)
                if (/auto|scroll/.test(getComputedStyle(up).overflowX)) return false;
            return table.getBoundingClientRect().right > innerWidth;
        }).length"""
    )
    assert wide == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.dataset.mdColorScheme") == ("slate" if scheme == "dark" else "default")
    if name == "index":
        assert "pip install" in page.inner_text("article")
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"site-{name.replace('/', '-')}-{width}-{scheme}.png")
    page.close()
