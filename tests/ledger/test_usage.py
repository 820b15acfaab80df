"""`headway usage`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headway.config import PricesSettings, Settings
from headway.errors import HeadwayError, UsageError
from headway.ledger.commands import read_time, usage_command

from .books import AT, FAST, STANDARD, book_at, entry, groups, sqlite, write

DAY = 86_400.0
NOW = datetime(2026, 11, 30, 12)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Two keys, two days, two dialects."""
    url = sqlite(tmp_path)
    book = book_at(url, PricesSettings(input=1.0, output=2.0))
    write(book, "a", facts={"requested": FAST, "served": FAST}, output=11, attainment=1.0)
    write(book, "b", facts={"requested": FAST}, output=1, ttft=0.25)
    write(book, "c", "cancelled", facts={"key": "bob", "dialect": "anthropic", "time": AT - 1}, output=1, ttft=None)
    write(book, "d", "error", facts={"key": "", "time": AT - DAY}, output=31, attainment=0.5)
    book.refused(entry("e", requested=FAST, served=FAST))
    book.close()
    return url


def settings(url: str) -> Settings:
    return Settings().with_overrides({"ledger.url": url})


def test_by_mode(url: str) -> None:
    fast, standard = groups(url, "mode")
    assert (fast.group, fast.requests, fast.refused, fast.downgraded, fast.output_tokens) == (("fast",), 2, 1, 0, 11)
    assert (standard.requests, standard.cancelled, standard.error, standard.downgraded) == (3, 1, 1, 1)
    assert (standard.prompt_tokens, standard.cached_tokens, standard.output_tokens) == (30, 12, 33)
    assert standard.attainment == pytest.approx(0.5), "of tokens that had a deadline"
    assert standard.ttft == pytest.approx((0.25 + 0.5) / 2), "of requests that had a first token"
    assert fast.price == pytest.approx(6 * (10 + 22) * 1e-6)
    assert standard.price == pytest.approx((12 + 12) * 1e-6)


def test_by_several_things_in_their_order(url: str) -> None:
    assert [group.group for group in groups(url, "day", "key")] == [
        ("2026-11-29", ""),
        ("2026-11-29", "bob"),
        ("2026-11-30", "alice"),
    ]
    assert [group.group for group in groups(url, "dialect")] == [("anthropic",), ("openai",)]


def test_a_span_has_its_beginning_and_not_its_end(url: str) -> None:
    midnight = datetime(2026, 11, 30)
    assert sum(group.requests for group in groups(url, "mode", since=midnight)) == 3
    assert sum(group.requests for group in groups(url, "mode", until=midnight)) == 2
    assert groups(url, "mode", since=midnight, until=midnight) == []


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-30", datetime(2026, 11, 30), datetime(2026, 12, 1)),
        ("2026-11-30T06:30", datetime(2026, 11, 30, 6, 30), None),
        ("2026-11-30T06:30+02:00", datetime(2026, 11, 30, 4, 30), None),
        ("2026-11-30T06:30Z", datetime(2026, 11, 30, 6, 30), None),
        ("7d", NOW - timedelta(days=7), None),
        ("90m", NOW - timedelta(minutes=90), None),
    ],
)
def test_times(text: str, start: datetime, end: datetime | None) -> None:
    assert read_time("--since", text, NOW) == start
    assert read_time("--until", text, NOW, end=True) == (end or start)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "7y", "-7d", "999999999d"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match=r"--since .* is no time; write 2026-11-30"):
        read_time("--since", text, NOW)


def test_json(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    usage_command(settings(url), "mode,key", "2026-11-30", None, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["since"], told["until"], told["currency"]) == ("2026-11-30T00:00:00Z", None, "USD")
    assert [(row["mode"], row["key"], row["requests"], row["output_tokens"]) for row in told["rows"]] == [
        ("fast", "alice", 2, 11),
        ("standard", "alice", 1, 1),
    ]


def test_the_table_has_prices_only_if_there_are_any(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    usage_command(settings(url), "mode", None, None, as_json=False)
    table = capsys.readouterr().out
    assert "USD" in table and "0.000192" in table and "500.0 ms" in table and "50.0%" in table
    free = sqlite(tmp_path / "free")
    book = book_at(free)
    write(book, facts={"requested": STANDARD})
    book.close()
    usage_command(settings(free), "mode", None, None, as_json=False)
    assert "USD" not in capsys.readouterr().out
    usage_command(settings(free), "mode", None, "2000-01-01", as_json=False)
    assert capsys.readouterr().out == "no requests in this time\n"


def test_what_is_wrong_is_one_line(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--by color is not known; it is any of mode, key, day, dialect"):
        usage_command(settings(url), "mode,color", None, None, as_json=False)
    with pytest.raises(HeadwayError, match=r"there is no ledger at .* yet"):
        usage_command(settings(f"sqlite:///{tmp_path}/none.db"), "mode", None, None, as_json=False)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("this is no database, and long enough to be seen as none" * 20)
    with pytest.raises(HeadwayError, match=r"the ledger can't be read: .*not a database"):
        usage_command(settings(f"sqlite:///{tmp_path}/text.db"), "mode", None, None, as_json=False)
