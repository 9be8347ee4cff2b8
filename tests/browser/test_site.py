"""The documentation site in headless Chromium, after ``make docs``: the start page, search, dark mode, tables that fit.

Pictures of the pages are left in ``out``.
"""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browsing import PICTURES, chromium

import labelwood

SITE = Path(__file__).parents[2] / "build" / "site"
GALLERY = ("text_to_tags", "choosing_a_method", "thresholds", "explain", "streaming")
PAGES = ("index", "methods/linear_tree", "cli", "metrics", "results", "api", "runbook")


@pytest.fixture(scope="module")
def browser():
    if not (SITE / "index.html").is_file():
        pytest.skip("no site: run make docs first")
    PICTURES.mkdir(exist_ok=True)
    with chromium() as browser:
        yield browser


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
    page.screenshot(path=PICTURES / f"site-{name.replace('/', '-')}-{width}-{scheme}.png")
    page.close()


def test_the_start_page_has_a_command_a_picture_and_the_version(browser):
    page = browser.new_page()
    page.goto((SITE / "index.html").as_uri())
    page.wait_for_load_state()
    assert "pip install . && labelwood demo" in page.inner_text("article")
    assert page.evaluate("document.querySelector('article img').naturalWidth") > 600
    assert f"Labelwood {labelwood.__version__}" in page.inner_text("footer")
    page.close()


@pytest.fixture(scope="module")
def address():
    """The site on a port of this machine: a browser does not search pages that it reads from files."""
    handler = partial(QuietHandler, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Writes no log."""

    def log_message(self, *_):
        pass


def test_search_finds_a_page(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    page.click("input.md-search__input")
    page.keyboard.type("propensity")
    found = page.wait_for_selector(".md-search-result__link", timeout=30_000)
    assert ".html" in found.get_attribute("href")
    page.close()


def test_the_gallery_begins_with_a_list_of_all_plots(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((SITE / "index.html").as_uri())
    page.click("article a[href='gallery/index.html']")
    page.wait_for_load_state()
    loaded = page.evaluate("[...document.querySelectorAll('article img')].map(image => image.naturalWidth > 200)")
    assert loaded == [True] * 10
    assert len(page.query_selector_all("article td a[href$='.html']")) == 20
    page.screenshot(path=PICTURES / "gallery-index.png", full_page=True)
    page.close()


@pytest.mark.parametrize("name", GALLERY)
def test_a_page_of_the_gallery_has_its_plot(browser, name):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((SITE / "gallery" / f"{name}.html").as_uri())
    page.wait_for_load_state()
    widths = page.evaluate("[...document.querySelectorAll('article img')].map(image => image.naturalWidth)")
    assert widths
    assert min(widths) > 200
    page.screenshot(path=PICTURES / f"gallery-{name}.png", full_page=True)
    page.close()
