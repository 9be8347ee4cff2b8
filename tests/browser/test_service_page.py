"""The web page of the service in headless Chromium; ``make test-browser`` installs Chromium and Playwright.

Screenshots are written to ``out/``.
"""

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs labelwood[serve]")

from animals import ANIMALS, EX
from browsing import CONTRASTS, chromium
from serving import Running, online_model

from labelwood import HashingEncoder, OnlineTree, TextClassifier
from labelwood.vocabulary import Vocabulary

PICTURES = Path(__file__).resolve().parents[2] / "out"
SCRIPT = '<img src=x onerror="window.hurt = 1"><script>window.hurt = 1</script>'
TEXT = "zebras have stripes and run in herds"


@pytest.fixture
def service(tmp_path):
    online_model().save(tmp_path / "model")
    running = Running(tmp_path / "model")
    yield running
    running.kill()


@pytest.fixture
def open_page(service):
    with chromium() as browser:
        problems = []

        def start(running=service, **options):
            page = browser.new_context(**options).new_page()
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on(
                "request",
                lambda request: None if request.url.startswith(running.facts["url"]) else problems.append(request.url),
            )
            page.goto(running.facts["url"])
            return page

        yield start
        assert not problems


def wait_for(page, selector, text):
    """Wait until an element shows a text. The page's security policy forbids waiting with JavaScript."""
    page.locator(selector, has_text=text).wait_for()


def first_label(page):
    return page.locator("#found li label").first.inner_text()


def picture(page, name):
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"service-{name}.png", full_page=True)


def test_suggest_teach_and_suggest_again(open_page, service):
    page = open_page()
    page.fill("#input", "a dog barks")
    page.wait_for_selector("#found li")
    assert first_label(page) == "pets"
    page.fill("#input", TEXT)
    page.fill("#new-label", "zoo")
    page.press("#new-label", "Enter")
    page.wait_for_selector("#found label:text-is('zoo')")
    for record in (2, 3, 4):
        page.click("#teach")
        wait_for(page, "#status", f"Learned as record {record}")
    page.wait_for_selector("#found li.fresh")
    assert first_label(page) == "zoo"
    page.click("button[aria-label='Why zoo']")
    page.wait_for_selector("#marked mark")
    assert "zebras" in page.locator("#marked mark").all_inner_texts()
    assert "zebras +" in page.inner_text("#why-words")
    assert page.locator("#why-path li").count() >= 1
    assert "zoo" in page.inner_text("#why-path")
    page.click("#figures summary")
    wait_for(page, "#h-learned", "3")
    assert page.inner_text("#h-state") == "learning"
    assert page.inner_text("#model").startswith("model: online-tree, ")
    picture(page, "page")
    page.reload()  # another visitor gets the new label too
    page.fill("#input", "stripes of zebras")
    page.wait_for_selector("#found li")
    assert first_label(page) == "zoo"


def tick_court(page):
    """A text of two subjects, with one of its suggestions ticked."""
    page.fill("#input", "a dog barks in court")
    page.wait_for_selector("#found li")
    page.check("#found li:has(label:text-is('court')) input")
    return page


def test_ticks_belong_to_their_text(open_page, service):
    page = tick_court(open_page())
    page.fill("#input", "a dog barks in court today")  # an edit of the same text
    page.wait_for_selector("#found li")
    assert page.locator("#found input:checked").count() == 1
    page.fill("#input", "income tax is due")  # another document
    page.wait_for_selector("#found li")
    assert page.locator("#found input:checked").count() == 0
    assert page.is_disabled("#teach")


def test_ticks_end_with_teaching(open_page, service):
    page = tick_court(open_page())
    page.click("#teach")
    wait_for(page, "#status", "Teaching")
    page.fill("#input", "a dog barks in court again")
    page.wait_for_selector("#found li")
    assert page.locator("#found input:checked").count() == 0
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(7000)
    assert service.metric("examples_learned") == 1


def test_undo(open_page, service):
    page = tick_court(open_page())
    assert page.is_hidden("#undo")
    page.click("#teach")
    wait_for(page, "#status", "Teaching court in 5 seconds")
    page.click("#undo")
    wait_for(page, "#status", "Not taught")
    page.wait_for_timeout(6000)
    assert service.metric("examples_learned") == 0
    assert page.locator("#found input:checked").count() == 1, "the ticks stay, to be corrected"


def test_a_closed_page_still_teaches(open_page, service):
    page = tick_court(open_page())
    page.click("#teach")
    wait_for(page, "#status", "Teaching")
    page.goto("about:blank")
    page.wait_for_timeout(1000)
    assert service.metric("examples_learned") == 1


def test_teaching_says_what_unticked_labels_mean(open_page):
    assert "all other labels are wrong" in open_page().inner_text("#teaching")


def test_number_of_suggestions_and_copy(open_page):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.fill("#input", "a dog barks in court")
    page.wait_for_selector("#found li >> nth=3")
    page.check("#found li:has(label:text-is('court')) input")
    page.click("#copy")
    wait_for(page, "#status", "Copied 1 label.")
    assert page.evaluate("navigator.clipboard.readText()") == "court"


def test_a_read_only_model_has_no_teaching_controls(open_page, tmp_path):
    running = Running(tmp_path / "model", "--no-learn")
    try:
        page = open_page(running)
        page.fill("#input", "a dog barks")
        page.wait_for_selector("#found li")
        assert page.is_hidden("#teaching")
        assert page.locator("#found input:visible").count() == 0
        picture(page, "read-only")
    finally:
        running.kill()


def test_correcting_a_suggestion(open_page, service):
    page = tick_court(open_page())
    page.uncheck("#found li:has(label:text-is('court')) input")
    assert page.is_disabled("#teach")
    page.check("#found li:has(label:text-is('court')) input")
    page.press("#input", "Control+Enter")
    wait_for(page, "#status", "Learned as record")
    assert service.metric("examples_learned") == 1


def test_scripts_in_texts_and_labels_do_not_run(open_page, service):
    page = open_page()
    example = {"text": f"{TEXT} {SCRIPT}", "labels": [SCRIPT]}
    assert service.http.post("/learn", json={"examples": [example] * 5}).status_code == 200
    page.fill("#input", f"{TEXT} {SCRIPT}")
    page.wait_for_selector("#found li")
    assert first_label(page) == SCRIPT
    page.click("#found li button >> nth=0")
    page.wait_for_selector("#marked mark")
    page.fill("#new-label", "<img")
    page.wait_for_selector("#known option", state="attached")
    assert page.get_attribute("#known option", "value") == SCRIPT
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.hurt") is None
    picture(page, "script-text")


def test_the_page_works_by_keyboard_alone(open_page):
    page = open_page()
    page.keyboard.type("a dog barks")  # the text area has the focus
    page.wait_for_selector("#found li")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#found input").first.is_checked()
    page.keyboard.press("Control+Enter")
    wait_for(page, "#status", "Learned as record")


def test_a_phone_in_dark_mode(open_page):
    page = open_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.fill("#input", "income tax is due")
    page.wait_for_selector("#found li")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")) < 150
    picture(page, "phone-dark")


def test_a_service_with_tokens(open_page, tmp_path):
    (tmp_path / "tokens").write_text("read reading-token-0001\nwrite writing-token-0001\n")
    running = Running(tmp_path / "model", "--tokens", tmp_path / "tokens", "--state", tmp_path / "other")
    try:
        page = open_page(running)
        page.wait_for_selector("#access:visible")
        page.fill("#input", "a dog barks")
        wait_for(page, "#status", "requires a valid token")
        page.fill("#token", "reading-token-0001")
        page.press("#token", "Enter")
        page.wait_for_selector("#found li")
        assert page.is_hidden("#access")
        page.check("#found input >> nth=0")
        page.click("#teach")
        wait_for(page, "#status", "allows reading, not writing")
    finally:
        running.kill()


def test_names_of_a_vocabulary_in_two_languages(open_page, tmp_path):
    model = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**12, n_jobs=1))
    texts = ["cats purr and meow", "dogs bark", "fish swim"]
    labels = [[EX + "cat"], [EX + "dog"], [EX + "fish"]]
    model.fit(texts * 5, labels * 5, vocabulary=Vocabulary.of(ANIMALS)).save(tmp_path / "animals")
    running = Running(tmp_path / "animals")
    try:
        page = open_page(running)
        page.fill("#input", "cats purr")
        page.wait_for_selector("#found li")
        assert first_label(page).splitlines() == ["cat", EX + "cat"], "the name, and the URI beside it"
        page.select_option("#language", "fi")
        page.wait_for_selector("#found label:has-text('kissa')")
        assert first_label(page).splitlines() == ["kissa", EX + "cat"]
        page.click("button[aria-label='Why kissa']")
        page.wait_for_selector("#why:not([hidden])")
        assert page.inner_text("#why-title") == "Why kissa"
        assert "the label kissa" in page.inner_text("#why-path")
        page.fill("#new-label", "kal")
        page.wait_for_selector("#known option[value='kala']", state="attached")
        page.fill("#new-label", "kala")
        page.press("#new-label", "Enter")
        assert "kala" in page.inner_text("#found")
        page.click("#teach")
        wait_for(page, "#status", "Learned as record")
        assert "new" not in page.inner_text("#status"), "kala is the label that the model had"
        picture(page, "names")
    finally:
        running.kill()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_page_that_watches(open_page, service, scheme, width):
    page = open_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    for _ in range(3):
        service.learn(*range(20))
    page.click("#figures summary")
    page.click("a[href=watch]")
    page.wait_for_selector("#picture-quality polyline", state="attached")  # a level line has no height
    page.wait_for_selector("figure:has(#picture-labels) figcaption:has-text('labels known to the model')")
    assert page.locator("figure svg[role=img]").count() == 6
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert min(page.evaluate(CONTRASTS)) > [4.5]
    picture(page, f"watch-{scheme}")
