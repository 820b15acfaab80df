"""Rows of the ledger, and what becomes of them when the database can't take them."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from cases.client import wait_for
from sqlalchemy import create_engine, text

from headway.config import LedgerSettings, PricesSettings
from headway.errors import HeadwayError, UsageError
from headway.ledger.book import open_book
from headway.ledger.database import default_url, open_database

from .books import FAST, STANDARD, book_at, end, entry, rows, sqlite, write

PRICES = PricesSettings(input=1.0, cached_input=0.5, output=2.0)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[str]:
    programs = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    if programs is None or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("needs PostgreSQL")
    pytest.importorskip("psycopg")
    bin_dir, data = Path(programs).parent, tmp_path / "data"
    as_user = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        as_user = ["runuser", "-u", "nobody", "--"]
        for folder in (tmp_path, *tmp_path.parents):
            if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
                folder.chmod(0o755)
        data.mkdir()
        shutil.chown(data, "nobody")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    subprocess.run([*as_user, bin_dir / "initdb", "-D", data, "-U", "headway", "-A", "trust"], check=True, capture_output=True)
    command = [*as_user, bin_dir / "postgres", "-D", data, "-p", str(port), "-k", "", "-c", "listen_addresses=127.0.0.1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    while b"ready to accept" not in process.stderr.readline():
        assert process.poll() is None
    try:
        yield f"postgresql://headway@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.communicate()


def test_a_row_says_everything(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    book = book_at(url, PRICES)
    facts = {"requested": FAST, "served": FAST, "dialect": "anthropic", "endpoint": "/v1/messages"}
    write(book, "req_1", facts=facts, drafted_tokens=3, accepted_tokens=2)
    book.close()
    (row,) = rows(url)
    assert row == {
        "n": 1,
        "id": "req_1",
        "time": datetime(2026, 11, 30),
        "key": "alice",
        "dialect": "anthropic",
        "endpoint": "/v1/messages",
        "model": "m",
        "requested_mode": "fast",
        "served_mode": "fast",
        "outcome": "stop",
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "output_tokens": 5,
        "drafted_tokens": 3,
        "accepted_tokens": 2,
        "ttft": 0.5,
        "tpot": 0.25,
        "attainment": 0.75,
        "engine_seconds": 0.25,
        "price_nano": 6 * (6 * 1000 + 4 * 500 + 5 * 2000),
    }


def test_what_was_served_is_billed(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    book = book_at(url, PRICES)
    write(book, facts={"requested": FAST, "served": STANDARD})
    book.close()
    (row,) = rows(url)
    assert (row["requested_mode"], row["served_mode"], row["price_nano"]) == ("fast", "standard", 18_000)


def test_choices_make_one_row_when_the_last_has_ended(tmp_path: Path) -> None:
    """n = 2 of two prompts: each prompt counts once."""
    url = sqlite(tmp_path)
    book = book_at(url, PRICES)
    book.opened(entry(choices_per_prompt=2), [f"a-{choice}" for choice in range(4)])
    book.opened(entry("never ends"), ["b-0", "b-1"])
    end(book, "b-0")
    for choice, outcome in ((2, "stop"), (0, "length"), (3, "cancelled"), (1, "stop")):
        end(book, f"a-{choice}", outcome, prompt=10 * (choice + 1), ttft=0.1 * (choice + 1))
    book.close()
    (row,) = rows(url)
    assert (row["prompt_tokens"], row["cached_tokens"], row["output_tokens"]) == (10 + 30, 8, 20)
    assert (row["outcome"], row["engine_seconds"]) == ("cancelled", 1.0)
    assert row["ttft"] == pytest.approx(0.1) and row["tpot"] == 0.25
    assert row["price_nano"] == 32_000 + 4_000 + 40_000


def test_withdrawn_choices_leave_no_row_and_a_refusal_one_without_tokens(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    book = book_at(url, PRICES)
    book.opened(entry("a", requested=FAST, served=FAST), ["a-0-fast", "a-1-fast"])
    end(book, "a-0-fast", "cancelled", output=0, ttft=None)
    book.withdrawn(["a-0-fast", "a-1-fast"])
    book.refused(entry("a", requested=FAST, served=STANDARD))
    end(book, "unheard of")
    book.close()
    (row,) = rows(url)
    assert (row["outcome"], row["prompt_tokens"], row["price_nano"]) == ("refused", 0, 0)
    assert (row["ttft"], row["tpot"], row["attainment"]) == (None, None, None)


@pytest.mark.parametrize(("outcome", "price"), [("stop", 18_000), ("length", 18_000), ("cancelled", 18_000), ("error", 0)])
def test_the_server_s_own_failures_cost_nothing(tmp_path: Path, outcome: str, price: int) -> None:
    url = sqlite(tmp_path)
    book = book_at(url, PRICES)
    write(book, outcome=outcome)
    book.close()
    (row,) = rows(url)
    assert (row["outcome"], row["price_nano"], row["output_tokens"]) == (outcome, price, 5)


def test_rows_are_written_while_the_server_runs(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    book = book_at(url)
    write(book)
    wait_for(lambda: len(rows(url)) == 1)
    assert book.waiting == 0
    book.close()


def test_rows_wait_for_a_database_that_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "books"
    folder.write_text("a file where the folder should be")
    url = sqlite(tmp_path)
    with caplog.at_level(logging.WARNING, "headway.ledger"):
        book = book_at(url, most_waiting=2, retry_seconds=0.01)
        for name in "abc":
            write(book, name)
        wait_for(lambda: book.waiting == 2 and book.lost == 1)
        folder.unlink()
        wait_for(lambda: book.waiting == 0)
        book.close()
    assert [row["id"] for row in rows(url)] == ["b", "c"]
    assert ["can't be" in record.message for record in caplog.records] == [True, False]


def test_a_database_that_can_t_be_written_holds_up_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = sqlite(tmp_path)
    open_database(url).dispose()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:  # as on a full disk: every insert fails
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON headway_requests BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )
    connection.close()
    with caplog.at_level(logging.WARNING, "headway.ledger"):
        book = book_at(url, retry_seconds=0.01)
        for name in "abc":
            write(book, name)
        book.close()
    assert (book.lost, book.waiting) == (3, 0) and rows(url) == []
    assert len(caplog.records) == 1 and "disk is full" in caplog.text


def test_a_row_that_no_database_takes_doesn_t_hold_up_the_others(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    book = book_at(url)
    write(book, facts={"key": "\ud800"})
    wait_for(lambda: book.lost == 1)
    write(book, outcome="no such outcome")
    wait_for(lambda: book.lost == 2)
    write(book, "b")
    book.close()
    assert [row["id"] for row in rows(url)] == ["b"]


# --- databases ---------------------------------------------------------------------------------------------------------------


def test_columns_that_were_added_since_come_to_an_old_ledger(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    book = book_at(url)
    write(book, "old")
    book.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE headway_requests DROP COLUMN tpot"))
    engine.dispose()
    book = book_at(url)
    write(book, "new")
    book.close()
    assert [(row["id"], row["tpot"]) for row in rows(url)] == [("old", None), ("new", 0.25)]


def test_a_newer_ledger_is_left_alone(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE headway_schema SET version = 99"))
    engine.dispose()
    with pytest.raises(HeadwayError, match="version 99"):
        open_database(url)


def test_postgresql_keeps_the_same_books(postgres: str) -> None:
    from .books import groups

    book = book_at(postgres, PRICES)
    write(book, "a", facts={"requested": FAST, "served": FAST})
    write(book, "b", "cancelled", output=1, ttft=None)
    book.close()
    first, second = rows(postgres)
    assert (first["time"], first["tpot"], first["price_nano"]) == (datetime(2026, 11, 30), 0.25, 108_000)
    assert (second["outcome"], second["ttft"]) == ("cancelled", None)
    (day,) = groups(postgres, "day")
    assert (day.group, day.requests, day.cancelled, day.output_tokens) == (("2026-11-30",), 2, 1, 6)
    assert day.attainment == pytest.approx(0.75) and day.price == pytest.approx(118_000e-9)
    engine = open_database(postgres)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE headway_requests DROP COLUMN tpot"))
    engine.dispose()
    assert [row["tpot"] for row in rows(postgres)] == [None, None]


def test_where_the_ledger_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "a b"))
    assert default_url() == f"sqlite:///{tmp_path}/a b/ledger.db"
    monkeypatch.delenv("HEADWAY_HOME")
    assert default_url().startswith("sqlite:////") and default_url().endswith("headway/ledger.db")


def test_no_ledger_if_none_is_wanted_and_one_line_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_book(LedgerSettings(enabled=False), PricesSettings()) is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'headway\[postgres\]'"):
        open_book(LedgerSettings(url="postgresql://x/y"), PricesSettings())
