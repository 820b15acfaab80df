"""The page of a report: whole, closed to the outside, and safe to show."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headway.compare.page.page import page, write_page
from headway.compare.page.plots import plots
from headway.compare.page.svg import Axis, around, tag
from headway.errors import UsageError

from .made_up import EVIL, result


class Tags(HTMLParser):
    """Tags and their attributes, and whether every one is closed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((name, dict(attributes)))
        if name not in self.VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name


def test_the_page_is_well_formed_and_holds_every_plot() -> None:
    tags = Tags(page(result()))
    assert tags.open == []
    names = [name for name, _ in tags.found]
    assert names.count("svg") == 4
    assert names.count("circle") >= 3 + 3 + 15
    assert names.count("polyline") == 6


def test_what_comes_from_outside_is_escaped() -> None:
    text = page(result((EVIL, "javascript:alert(1)", "a")))
    assert "<script" not in text
    assert "<b>" not in text
    assert "alert(1)" in text
    assert Tags(text).open == []


def test_nothing_is_asked_of_anybody() -> None:
    text = page(result())
    tags = Tags(text)
    for name, attributes in tags.found:
        assert name not in ("script", "link", "img", "iframe", "object", "embed", "form", "a")
        assert not {"src", "href", "action", "onclick", "onload"} & attributes.keys()
    assert re.findall(r"url\(|@import", text) == []
    assert set(re.findall(r"https?://[^\"\s<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


def test_places_of_marks_are_numbers_within_the_drawing() -> None:
    for name, attributes in Tags(page(result(price=1.0))).found:
        if name == "circle":
            assert 0 <= float(attributes["cx"] or "nan") <= 360
            assert 0 <= float(attributes["cy"] or "nan") <= 260
            assert float(attributes["r"] or "nan") > 0
        if name == "polyline":
            assert all(0 <= float(value) <= 360 for value in re.split("[ ,]", attributes["points"] or "nan"))


def test_plots_without_anything_to_show_say_why() -> None:
    empty = result(tasks=0)
    assert [plot.missing is not None for plot in plots(empty)] == [True] * 4
    text = page(empty)
    assert "<svg" not in text
    assert "No chains were asked." in text


def test_one_target_and_eight_are_drawn_too() -> None:
    for labels in (("a",), tuple("abcdefgh")):
        assert Tags(page(result(labels))).open == []


def test_prices_stand_where_every_target_has_one() -> None:
    assert "USD/1000 right" in page(result(price=2.0))
    assert "device s/right" in page(result(price=None))


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--report"):
        write_page(result(), tmp_path)


def test_axes_have_round_ticks_within_their_ends() -> None:
    assert Axis(0.0, 1.0, 0, 100).ticks == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis(8.0, 300.0, 0, 100, log=True).ticks == pytest.approx([10, 20, 50, 100, 200])
    assert Axis(0.001, 1000.0, 0, 100, log=True).ticks == pytest.approx([0.001, 0.01, 0.1, 1, 10, 100, 1000])
    assert Axis(10.0, 1000.0, 0, 100, log=True)(100.0) == pytest.approx(50.0)
    assert Axis(0.0, 10.0, 100, 0)(25.0) == 0


def test_ends_hold_the_values() -> None:
    for values in ([5.0], [1.0, 2.0], [0.0], [-3.0, 4.0]):
        low, high = around(values)
        assert low < min(values) and high > max(values)
    assert around([0.0, 10.0, 100.0], log=True) == pytest.approx((10 / 1.5, 150.0))
    assert around([]) == (0.0, 1.0)


def test_attributes_are_escaped() -> None:
    assert (
        tag("a", class_='x" onload="y', stroke_width=1.0, none=None)
        == '<a class="x&quot; onload=&quot;y" stroke-width="1"></a>'
    )
