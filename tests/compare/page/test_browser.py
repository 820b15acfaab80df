"""The page in a real browser, by `make test-browser`: it fits a phone and a desk, light and dark, and its plots hold something.

HEADWAY_TEST_BROWSER names a folder for the screenshots. Needs playwright, and Chromium: playwright's own, or the system's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.compare.page.page import write_page

from .made_up import EVIL, result

FOLDER = os.environ.get("HEADWAY_TEST_BROWSER")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="HEADWAY_TEST_BROWSER is not set: make test-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        own = shutil.which("chromium") or shutil.which("google-chrome")
        opened = started.chromium.launch(executable_path=own, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "labels", [("standard", "fast", "spark"), (EVIL, "x" * 80, "openai:gpt-5.3-codex-spark@fast")], ids=["own", "odd"]
)
def test_the_page_fits_and_its_plots_hold_something(
    browser: Any, tmp_path: Path, scheme: str, width: int, labels: tuple[str, ...]
) -> None:
    path = tmp_path / "report.html"
    write_page(result(labels), path)
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.goto(path.as_uri())
    assert asked == [path.as_uri()]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') && "
        "e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert beyond == []
    assert page.evaluate("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height > 150)") == [True] * 4
    marks = page.evaluate(
        "[...document.querySelectorAll('svg')].map(s => [...s.querySelectorAll('.mark, .line')].filter(m => {"
        "const b = m.getBoundingClientRect(); return b.width + b.height > 2}).length)"
    )
    assert all(count >= 3 for count in marks)
    ground, ink = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert (brightness(ground) > brightness(ink)) is (scheme == "light")
    page.screenshot(path=Path(FOLDER or ".") / f"{labels[2][:5]}-{width}-{scheme}.png", full_page=True)
    page.close()


def test_the_page_prints(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_page(result(), path)
    page = browser.new_page(color_scheme="dark")
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    assert brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 700
    assert page.pdf(path=Path(FOLDER or ".") / "report.pdf", format="A4").startswith(b"%PDF")
    page.close()


def brightness(colour: str) -> int:
    """Of `rgb(1, 2, 3)`."""
    return sum(int(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3])
