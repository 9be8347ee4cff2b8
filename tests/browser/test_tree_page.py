"""The web page of ``labelwood tree`` in headless Chromium; run by ``make test-browser``."""

import shutil
from pathlib import Path

import pytest
from animals import ANIMALS, EX
from browsing import CONTRASTS

from labelwood import TextClassifier
from labelwood.cli import main
from labelwood.vocabulary import Vocabulary

PICTURES = Path(__file__).parents[2] / "out"


@pytest.fixture
def page():
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright; see make test-browser")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine; make test-browser installs it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(offline=True)  # the page must need no network
        page = context.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if "file:" not in request.url else None)
        yield page
        browser.close()
        assert not problems


def find(page, label):
    """Search for a label as a user does, and return the text of the highlighted row."""
    page.fill("#query", label)
    page.click("#hits li >> nth=0")
    return page.inner_text(".row.chosen .hint, .row.chosen span:last-child")


def test_a_tree_of_24_309_labels(page, real_data, tmp_path):
    data = real_data("yso_finna_en")
    texts, labels = data / "train.raw.txt.xz", data / "train.txt.xz"
    model, html = tmp_path / "model", tmp_path / "tree.html"
    quick = ("--max-passes", "1", "--tolerance", "5")  # the test checks the page, not the precision
    assert main(["train", str(texts), "--labels", str(labels), "-o", str(model), *quick]) == 0
    assert main(["tree", str(model), "--html", str(html)]) == 0
    page.goto(html.as_uri())
    assert "24,309 labels" in page.inner_text("#facts")
    drawn = page.locator(".row").count()
    assert drawn < 1000, "children are drawn on demand"
    name = page.evaluate("data.label_names[data.labels[0][5][0]]")
    assert find(page, name) == name
    assert page.locator(".row").count() > drawn
    assert page.locator(".row.chosen").is_visible()
    assert "Words that lead here" in page.inner_text("#node")
    # Opening all nodes of the second level, which puts all labels on the page, stays fast.
    seconds = page.evaluate(
        """() => { const start = performance.now();
                   for (const row of [...document.querySelectorAll('.row')])
                       if (row.firstChild.textContent === '\\u25b8') row.click();
                   return (performance.now() - start) / 1000; }"""
    )
    assert seconds < 20
    picture = page.screenshot(path=tmp_path / "tree.png")
    assert len(picture) > 20_000
    assert distinct_colours(page, picture) > 5, "the page is empty"


def distinct_colours(page, picture):
    """Count the colours of a screenshot, in the browser."""
    import base64

    return page.evaluate(
        """async source => {
            const image = new Image();
            image.src = 'data:image/png;base64,' + source;
            await image.decode();
            const canvas = document.createElement('canvas');
            [canvas.width, canvas.height] = [image.width, image.height];
            const context = canvas.getContext('2d');
            context.drawImage(image, 0, 0);
            const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
            return new Set(pixels).size;
        }""",
        base64.b64encode(picture).decode(),
    )


@pytest.mark.parametrize("method", ["one-vs-rest", "online-tree", "ldsm-forest"])
def test_every_kind_of_tree(page, tmp_path, method):
    docs = tmp_path / "docs.csv"
    rows = [f"word{i % 600} text,label {i % 600}</script>" for i in range(1200)]
    docs.write_text("text,tags\n" + "\n".join(rows) + "\n")
    model, html = tmp_path / "model", tmp_path / "tree.html"
    more = ["--n-trees", "2"] if method == "ldsm-forest" else []
    assert main(["train", str(docs), "-o", str(model), "--method", method, *more]) == 0
    assert main(["tree", str(model), "--html", str(html)]) == 0
    page.goto(html.as_uri())
    found = find(page, "label 417")
    assert "label 417</script>" in (found if method != "ldsm-forest" else page.inner_text("#node"))


@pytest.mark.parametrize(("language", "name"), [("en", "cat"), ("fi", "kissa")])
def test_names_of_a_vocabulary(page, tmp_path, language, name):
    labels = [[EX + "cat"], [EX + "dog"], [EX + "fish"]]
    model = TextClassifier().fit(["cats purr", "dogs bark", "fish swim"], labels, vocabulary=Vocabulary.of(ANIMALS))
    model.save(tmp_path / "model")
    html = tmp_path / "tree.html"
    assert main(["tree", str(tmp_path / "model"), "--html", str(html), "--language", language]) == 0
    page.goto(html.as_uri())
    assert find(page, name) == name
    assert page.inner_text("#node .uri") == EX + "cat"
    page.fill("#query", EX + "dog")
    assert page.inner_text("#hits li >> nth=0") == "dog"


@pytest.fixture
def small_tree(tmp_path):
    docs, model, html = tmp_path / "docs.csv", tmp_path / "model", tmp_path / "tree.html"
    rows = [f"word{i % 60} about topic{i % 6} and more,a long name of a label {i % 60}" for i in range(600)]
    docs.write_text("text,tags\n" + "\n".join(rows) + "\n")
    assert main(["train", str(docs), "-o", str(model), "--max-leaf", "10", "--arity", "6"]) == 0
    assert main(["tree", str(model), "--html", str(html)]) == 0
    return html


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(page, small_tree, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(small_tree.as_uri())
    page.click("#legend summary")
    page.click(".row >> nth=2")
    assert min(page.evaluate(CONTRASTS)) > [4.5]
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"tree-{scheme}.png")


def test_a_legend_and_the_numbers_of_nodes(page, small_tree):
    page.goto(small_tree.as_uri())
    page.click("#legend summary")
    legend = page.inner_text("#legend")
    for sign in ("#7", "labels below the node", "the words that lead into the node", "balance"):
        assert sign in legend
    for row in page.locator(".row[data-node]").all()[:5]:
        assert row.locator(".number").inner_text() == "#" + row.get_attribute("data-node")
    find(page, "a long name of a label 7")
    assert "node " + page.locator(".row.chosen").get_attribute("data-node") in page.inner_text("#node")


def test_a_phone(page, small_tree):
    page.set_viewport_size({"width": 375, "height": 667})
    page.goto(small_tree.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    tree, node = page.locator("#tree").bounding_box(), page.locator("#node").bounding_box()
    assert node["y"] >= tree["y"] + tree["height"]
    assert tree["width"] == node["width"] == 375
    assert find(page, "a long name of a label 7") == "a long name of a label 7"
    assert page.locator(".row.chosen").is_visible()
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / "tree-phone.png")
