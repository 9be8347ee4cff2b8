"""``labelwood review`` in headless Chromium: a sitting by keyboard alone, by two people, over 500,000 labels."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the review page needs labelwood[serve]")

from browsing import CONTRASTS, PICTURES, chromium
from serving import Running

from labelwood import LinearTree, TextClassifier
from labelwood.data import load_text

N_LABELS, N_DOCUMENTS = 500_000, 20
SCRIPT = '<img src=x onerror="window.hurt = 1"><script>window.hurt = 1</script>'
SYLLABLES = ("ta", "ko", "ri", "mu", "se", "lan", "ver", "tin", "pre", "con", "sta", "gra", "lo")
TOPICS = ("tides", "glaciers", "harbours", "orchards", "bridges")


def uri(number):
    return f"http://example.org/{number}"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Documents, a model of a few labels, and a vocabulary of 500,000 labels."""
    folder = tmp_path_factory.mktemp("world")
    random = np.random.default_rng(0)
    words = ["".join(SYLLABLES[part] for part in row) for row in random.integers(0, len(SYLLABLES), (40_000, 3))]
    names = [*TOPICS, *(" ".join(words[at] for at in row) for row in random.integers(0, len(words), (N_LABELS, 2)))]
    with (folder / "labels.csv").open("w") as file:
        file.write("uri,label_en,label_fi,alt_en,broader\n")
        for number, name in enumerate(names[:N_LABELS]):
            also = f"rare synonym {number}" if number % 1000 == 7 else ""
            broader = uri(number // 10) if number >= 10 else ""
            file.write(f"{uri(number)},{name},{f'{name} suomeksi' if number < 100 else ''},{also},{broader}\n")
    texts = [f"a report about {topic} and water" for topic in TOPICS]
    model = TextClassifier(LinearTree(n_jobs=1)).fit(texts * 3, [[uri(place)] for place in range(len(TOPICS))] * 3)
    model.save(folder / "model")
    rows = [f"d{row},this report is about {TOPICS[row % 5]} near {TOPICS[(row + 1) % 5]}" for row in range(N_DOCUMENTS)]
    (folder / "docs.csv").write_text("id,text\n" + "\n".join(rows) + "\n")
    return folder, names


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def review(tmp_path):
    """Starts ``labelwood review``; ends it after the test."""
    started = []

    def start(*words):
        started.append(Running(*words, command="review"))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.kill()


class Sitting:
    """One person at a keyboard."""

    def __init__(self, browser, running, who, **options):
        self.problems = []
        self.page = browser.new_context(**options).new_page()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda asked: self._note(asked.url, running.facts["url"]))
        self.page.goto(running.facts["url"])
        self.page.wait_for_selector("#start:visible")
        self.keys(who)  # the field for the name has the focus
        self.press("Enter")
        self.wait("[data-document]")

    def _note(self, asked, own):
        if not asked.startswith((own, "blob:" + own)):
            self.problems.append(asked)

    def wait(self, state):
        self.page.wait_for_selector(f"body{state}[data-waiting='0']")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def keys(self, text):
        self.page.keyboard.type(text)

    @property
    def document(self):
        return self.page.get_attribute("body", "data-document")

    def marks(self):
        rows = self.page.locator("#labels li").all()
        return {
            row.get_attribute("data-label"): row.get_attribute("class") for row in rows if row.get_attribute("class")
        }

    def next(self):
        before = self.document
        self.press("n")
        self.wait(f"[data-document]:not([data-document='{before}'])")

    def find(self, text):
        """Find a label by the beginning of its name, and add the first hit; return its label."""
        self.press("/")
        self.keys(text)
        self.page.wait_for_selector(f'#hits[data-query="{text}"] li[aria-selected=true]')
        n_rows = self.page.locator("#labels li").count()
        self.press("Enter")
        self.page.wait_for_selector(f"#labels li.accept >> nth={0}")
        assert self.page.locator("#labels li").count() == n_rows + 1
        self.wait("")
        return self.page.locator("#labels li").last.get_attribute("data-label")


def picture(page, name):
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"review-{name}.png", full_page=True)


def test_a_sitting_of_20_documents_by_keyboard(browser, review, world, tmp_path):
    folder, names = world
    out = tmp_path / "reviewed.csv"
    words = (folder / "docs.csv", "--model", folder / "model", "--vocabulary", folder / "labels.csv", "-o", out)
    running = review(*words, "--next", "order")
    assert running.facts["labels"] == N_LABELS
    anna, bert = Sitting(browser, running, "Anna"), Sitting(browser, running, "Bert")
    done, times = {}, []
    for person in (anna, bert):
        person.page.on("requestfinished", lambda asked: times.append(asked.timing) if "/find?" in asked.url else None)
    for turn in range(N_DOCUMENTS):
        person, who = (anna, "Anna") if turn % 2 else (bert, "Bert")
        other = bert if person is anna else anna
        document, row = person.document, int(person.document[1:])
        assert document not in done
        assert document != other.document, "two people have different documents"
        topics = [uri(row % 5), uri((row + 1) % 5)]
        assert person.page.get_attribute("#labels li >> nth=0", "data-label") in topics
        first = person.page.get_attribute("#labels li >> nth=0", "data-label")
        person.press("a")
        labels = {first}
        person.press("r", "ArrowUp", "r")  # rejected, and the mark taken away again
        if turn % 3 == 0:
            wanted = 5 + 7 * turn
            labels.add(person.find(names[wanted]))
        if turn == 4:  # by an alternative name
            labels.add(person.find("rare syn 50007"))
            assert uri(50007) in labels
        if turn == 6:  # undo a decision, and another one
            person.press("j", "r")
            person.wait("")
            person.press("u")
            person.page.wait_for_selector("#status:has-text('Taken back')")
        if turn == 8:  # close the page in the middle of a document
            person.wait("")
            before = person.marks()
            person.page.reload()
            person.wait(f"[data-document='{document}']")
            assert person.marks() == before
        if turn == 10:  # undo that a document is done
            person.next()
            person.press("u")
            person.page.wait_for_selector(f"#status:has-text('Document {document} is open again')")
            assert person.document == document
        if turn == 13:
            person.press("w")
            person.page.wait_for_selector("#why:visible")
            assert "speak" in person.page.inner_text("#sentences")
            assert person.page.locator("#text mark").count() >= 1
            picture(person.page, "desktop")
        person.wait("")
        assert {label for label, mark in person.marks().items() if mark == "accept"} == labels
        done[document] = (labels, who)
        if turn < N_DOCUMENTS - 2:
            person.next()
        else:
            person.press("n")
            person.page.wait_for_selector("body[data-document='']")
    assert len(done) == N_DOCUMENTS
    assert anna.page.is_visible("#nothing")
    with anna.page.expect_download() as waiting:
        anna.page.focus(".export[data-format=jsonl]")
        anna.press("Enter")
    lines = [json.loads(line) for line in waiting.value.path().read_text().splitlines()]
    assert {line["id"]: (set(line["labels"]), line["who"]) for line in lines} == done
    code, said = running.stop()
    assert (code, "20 of 20 documents" in said) == (0, True)
    with out.open() as file:
        rows = {row["id"]: (set(row["labels"].split(";")), row["who"]) for row in csv.DictReader(file)}
    assert rows == done
    assert len(load_text(out).labels) == N_DOCUMENTS
    assert not [*anna.problems, *bert.problems]
    spent = sorted(one["responseEnd"] - one["requestStart"] for one in times)
    middle, longest = spent[len(spent) // 2], spent[-1]
    print(f"{len(spent)} searches over {N_LABELS} labels: median {middle:.0f} ms, longest {longest:.0f} ms")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A few documents and label names, without a model."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "names.tsv").write_text("tax\tincome tax\nwhale\twhales\tbig fish\nharbour\n")
    rows = ["the income tax of 1999", "whales swim near the harbour", "whales and tax"]
    (folder / "docs.csv").write_text("text\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture
def small_review(small, review, tmp_path):
    out = tmp_path / "out.csv"
    return review(small / "docs.csv", "--label-texts", small / "names.tsv", "-o", out)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser, small_review, scheme):
    sitting = Sitting(browser, small_review, "Anna", color_scheme=scheme)
    sitting.press("a", "w")
    sitting.page.wait_for_selector("#why:visible")
    for part in ("#progress", "#help"):
        sitting.page.click(f"{part} summary")
    sitting.press("/")
    sitting.keys("whal")
    sitting.page.wait_for_selector("#hits li[aria-selected=true]")
    assert min(sitting.page.evaluate(CONTRASTS)) > [4.5]
    picture(sitting.page, scheme)
    assert not sitting.problems


def test_a_phone(browser, small_review):
    options = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "color_scheme": "dark"}
    sitting = Sitting(browser, small_review, "Anna", **options)
    page = sitting.page
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.tap("#labels li >> nth=0 >> button >> nth=0")
    page.wait_for_selector("#labels li.accept")
    sitting.wait("")
    for button in page.locator("#labels button, .bar button").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 24, "targets are large enough (WCAG 2.5.8)"
    picture(page, "phone-dark")
    page.tap("#next")
    sitting.wait("[data-document='2']")


def test_labels_of_the_page_speak(browser, small_review):
    """Every field and button has a name, and the list tells its state."""
    sitting = Sitting(browser, small_review, "Anna")
    page = sitting.page
    for element in page.locator("input:visible, button:visible, select:visible").all():
        told = element.evaluate(
            "one => one.getAttribute('aria-label') || one.labels?.[0]?.textContent || one.textContent"
        )
        assert told.strip()
    sitting.press("a")
    page.wait_for_selector("#labels li.accept")
    assert "accepted" in page.get_attribute("#labels li >> nth=0", "aria-label")
    assert page.get_attribute("#query", "role") == "combobox"


def test_single_keys_can_be_switched_off(browser, small_review):
    sitting = Sitting(browser, small_review, "Anna")
    sitting.page.click("#help summary")
    sitting.page.uncheck("#keys")
    sitting.page.focus("#labels li >> nth=0")
    sitting.press("a", "n")
    sitting.page.wait_for_timeout(300)
    assert sitting.document == "1"
    assert sitting.marks() == {}


def test_a_service_that_ends_loses_nothing(browser, small, review, tmp_path):
    words = (small / "docs.csv", "--label-texts", small / "names.tsv", "-o", tmp_path / "out.csv")
    running = review(*words)
    sitting = Sitting(browser, running, "Anna")
    sitting.press("a")
    sitting.wait("")
    running.kill()
    sitting.press("r")
    sitting.page.wait_for_selector("#status:has-text('Not saved yet')")
    again = review(*words)
    other = Sitting(browser, again, "Anna")
    assert other.document == "1"
    assert list(other.marks().values()) == ["accept"]


def test_scripts_in_any_field_do_not_run(browser, review, tmp_path):
    docs = [{"id": SCRIPT, "text": f"whales {SCRIPT}"}, {"id": "2", "text": SCRIPT}]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in docs))
    (tmp_path / "names.tsv").write_text(f"{SCRIPT}\twhales {SCRIPT}\n")
    out = tmp_path / "out.jsonl"
    running = review(tmp_path / "docs.jsonl", "--label-texts", tmp_path / "names.tsv", "-o", out)
    sitting = Sitting(browser, running, SCRIPT[:60])
    page = sitting.page
    assert SCRIPT in page.inner_text("#text")
    assert SCRIPT in page.inner_text("#labels")
    sitting.press("w")
    page.wait_for_selector("#why:visible")
    sitting.press("/")
    sitting.keys("img")
    page.wait_for_selector("#hits li[aria-selected=true]")
    page.fill("#query", f"new {SCRIPT}")
    page.wait_for_selector("#hits li:has-text('New label')")
    sitting.press("Enter")
    page.wait_for_selector("#labels li.accept")
    sitting.wait("")
    sitting.press("n")
    sitting.wait("[data-document='2']")
    page.click("#progress summary")
    assert SCRIPT[:20] in page.inner_text("#by-person")
    assert page.locator("img, body script").count() == 0
    assert page.evaluate("window.hurt") is None
    picture(page, "script-text")
    assert not sitting.problems


def test_labels_from_nothing(browser, review, tmp_path):
    """A file and nothing else: labels that people make are found and suggested afterwards."""
    (tmp_path / "docs.csv").write_text("text\nwhales and tax\nthe Tax of 1999\ntax on whales\n")
    running = review(tmp_path / "docs.csv", "-o", tmp_path / "out.csv")
    anna = Sitting(browser, running, "Anna")
    assert anna.page.inner_text("#none") == "Nothing is suggested. Find or make a label below."
    for label in ("tax", "whales"):
        anna.press("/")
        anna.keys(label)
        anna.page.wait_for_selector(f'#hits[data-query="{label}"] li[aria-selected=true]:has-text("New label")')
        anna.press("Enter")
        anna.wait("")
    assert not anna.page.is_visible("#none")
    anna.next()
    assert anna.page.locator("#labels .name").all_inner_texts() == ["tax"]
    assert "%" not in anna.page.inner_text("#labels"), "without a model there is no probability"
    anna.press("/")
    anna.keys("wh")
    anna.page.wait_for_selector('#hits[data-query="wh"] li >> nth=0')
    assert anna.page.locator("#hits .name").all_inner_texts() == ["whales"]
    picture(anna.page, "from-nothing")
    anna.press("Escape", "A")  # with Caps Lock
    anna.wait("")
    anna.next()
    assert sorted(anna.page.locator("#labels .name").all_inner_texts()) == ["tax", "whales"]
    running.stop()
    with (tmp_path / "out.csv").open() as file:
        assert [row["labels"] for row in csv.DictReader(file)] == ["tax;whales", "tax"]
    assert not anna.problems
