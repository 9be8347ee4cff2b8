"""What tests in a browser share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PICTURES = Path(__file__).resolve().parents[2] / "out"

# The contrast of each text to the first background behind it (WCAG 2: relative luminance).
CONTRASTS = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([red, green, blue]) => [red, green, blue].map(value => value / 255)
        .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
    const behind = element => {
        for (let up = element; up; up = up.parentElement) {
            const found = numbers(getComputedStyle(up).backgroundColor);
            if (found.length === 3 || found[3] === 1) return found;
        }
        return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    };
    return [...document.querySelectorAll("body *")]
        .filter(one => one.checkVisibility())
        .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
        .map(one => {
            const [text, back] = [light(numbers(getComputedStyle(one).color)), light(behind(one))];
            return [(Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05), one.className, one.textContent];
        });
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright; skips the test if one of them is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright; see make test-browser")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on this machine; make test-browser installs it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
