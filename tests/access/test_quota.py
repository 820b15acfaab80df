"""Limits of keys: what is taken, what is given back, and the waits that are told."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.access.allowance import Allowance, Kind, OverLimit
from headway.access.keys import Caller
from headway.access.quota import Hold, Quota
from headway.config import KeySettings, LimitSettings, LimitsSettings
from headway.errors import UsageError
from headway.modes import ModeName

FAST, STANDARD = ModeName.FAST, ModeName.STANDARD
ALICE, BOB = Caller("alice", "alice", "alice"), Caller("bob", "bob", "bob")
HASH = "sha256:" + "0" * 64


class Clock:
    """Stands in for the library's and ours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000_000.0
        monkeypatch.setattr("time.time", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def everybody(storage: str = "memory", **standard: int) -> Quota:
    return Quota(Allowance(LimitsSettings(standard=LimitSettings(**standard)), {}), storage)


def take(quota: Quota, caller: Caller = ALICE, mode: ModeName = STANDARD, *, prompt: int = 1, output: int = 1) -> Hold | None:
    needs = {Kind.REQUESTS: 1, Kind.INPUT: prompt, Kind.OUTPUT: output}
    return asyncio.run(quota.take(caller, mode, needs))


def settle(quota: Quota, hold: Hold | None, output: int) -> None:
    assert hold is not None
    asyncio.run(quota.settle(hold, {Kind.OUTPUT: output}))


def refused(quota: Quota, caller: Caller = ALICE, mode: ModeName = STANDARD, *, prompt: int = 1, output: int = 1) -> OverLimit:
    with pytest.raises(OverLimit) as caught:
        take(quota, caller, mode, prompt=prompt, output=output)
    return caught.value


def test_a_key_s_own_limits_stand_before_everybody_s() -> None:
    limits = LimitsSettings(standard=LimitSettings(requests=5, output_tokens=100))
    keys = {
        "alice": KeySettings(hash=HASH, standard=LimitSettings(requests=50)),
        "bob": KeySettings(hash=HASH, modes=("standard",)),
    }
    allowance = Allowance(limits, keys)
    assert allowance.limits("alice", STANDARD) == {Kind.REQUESTS: 50, Kind.OUTPUT: 100}
    assert allowance.limits("bob", STANDARD) == {Kind.REQUESTS: 5, Kind.OUTPUT: 100}
    assert allowance.limits("alice", FAST) == {}
    assert allowance.limits("bob", FAST) == {Kind.REQUESTS: 0}
    assert not allowance.unlimited and Allowance(LimitsSettings(), {"a": KeySettings(hash=HASH)}).unlimited


def test_nothing_limited_takes_nothing() -> None:
    assert take(everybody()) is None


def test_so_many_requests_and_no_more_until_the_wait_is_over(clock: Clock) -> None:
    quota = everybody(requests=3)
    for left in (2, 1, 0):
        hold = take(quota)
        assert hold is not None and hold.taking.windows[Kind.REQUESTS].remaining == left
        clock.now += 5
    for _ in range(20):
        over = refused(quota)
        assert over.windows[Kind.REQUESTS].remaining == 0 and not over.hopeless
    assert over.retry_after == pytest.approx(45)
    clock.now += 44.9
    refused(quota)
    clock.now += 0.2
    take(quota)


def test_keys_and_modes_are_counted_apart() -> None:
    one = LimitSettings(requests=1)
    limits = LimitsSettings(standard=one, fast=one, spark=one)
    quota = Quota(Allowance(limits, {}), "memory")
    for caller in (ALICE, BOB):
        for mode in ModeName:
            take(quota, caller, mode)
            refused(quota, caller, mode)


def test_output_is_taken_as_a_cap_and_settled_as_it_was() -> None:
    quota = everybody(output_tokens=100)
    hold = take(quota, output=80)
    over = refused(quota, output=30)
    assert over.kind is Kind.OUTPUT and over.windows[Kind.OUTPUT].remaining == 20
    assert "100 output tokens a minute" in over.message and "asks for 30" in over.message
    settle(quota, hold, 10)
    hold = take(quota, output=90)
    assert hold is not None and hold.taking.windows[Kind.OUTPUT].remaining == 0


def test_what_is_refused_takes_nothing_of_the_others() -> None:
    quota = everybody(requests=2, input_tokens=100, output_tokens=10)
    take(quota, prompt=10, output=10)
    over = refused(quota, prompt=10, output=1)
    assert {kind: window.remaining for kind, window in over.windows.items()} == {
        Kind.REQUESTS: 1,
        Kind.INPUT: 90,
        Kind.OUTPUT: 0,
    }


def test_a_cap_above_the_limit_needs_a_whole_minute_and_is_served() -> None:
    quota = everybody(output_tokens=100)
    hold = take(quota, output=5000)
    refused(quota, output=1)
    settle(quota, hold, 40)
    refused(quota, output=5000)
    take(quota, output=60)


def test_nothing_goes_back_to_another_minute(clock: Clock) -> None:
    quota = everybody(output_tokens=100)
    hold = take(quota, output=100)
    clock.now += 61
    take(quota, output=100)
    settle(quota, hold, 0)
    refused(quota, output=1)


@pytest.mark.parametrize(("limits", "prompt"), [({"requests": 0}, 1), ({"output_tokens": 0}, 1), ({"input_tokens": 9}, 10)])
def test_what_no_minute_allows_is_hopeless(limits: dict[str, int], prompt: int) -> None:
    over = refused(everybody(**limits), prompt=prompt)
    assert over.hopeless and over.retry_after == 60


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.booleans()), max_size=30), st.integers(1, 200))
def test_never_more_is_out_than_the_limit(requests: list[tuple[int, int, bool]], limit: int) -> None:
    """(cap, of which used, settled at once): what is used and what is held never come to more than the limit."""
    quota = everybody(output_tokens=limit)
    out = 0
    for cap, used, at_once in requests:
        try:
            hold = take(quota, output=cap)
        except OverLimit as over:
            assert min(cap, limit) > limit - out and over.windows[Kind.OUTPUT].remaining == limit - out
            continue
        assert hold is not None
        out += min(cap, limit)
        assert hold.taking.windows[Kind.OUTPUT].remaining == limit - out >= 0
        if at_once:
            settle(quota, hold, min(used, cap, limit))
            out -= min(cap, limit) - min(used, cap, limit)


# --- a store that servers share -----------------------------------------------------------------------------------------------


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("needs redis-server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    while b"eady to accept" not in process.stdout.readline():
        assert process.poll() is None
    try:
        yield f"redis://127.0.0.1:{port}/0", process
    finally:
        process.kill()
        process.communicate()


def test_servers_that_share_a_store_share_limits(redis: tuple[str, subprocess.Popen[bytes]]) -> None:
    one, two = everybody(redis[0], requests=2, output_tokens=100), everybody(redis[0], requests=2, output_tokens=100)
    hold = take(one, output=90)
    assert refused(two, output=20).kind is Kind.OUTPUT
    settle(one, hold, 5)
    take(two, output=95)
    over = refused(one, output=0)
    assert over.kind is Kind.REQUESTS and over.retry_after is not None and 55 < over.retry_after <= 60


def test_a_store_that_fails_is_warned_of_once_and_limits_go_on(
    redis: tuple[str, subprocess.Popen[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    quota = everybody(redis[0], requests=1)
    take(quota)
    redis[1].kill()
    redis[1].wait()
    take(quota)  # the process's own count begins
    refused(quota)
    assert len(caplog.records) == 1 and "their store fails" in caplog.text


def test_a_store_without_its_package_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis", None)
    with pytest.raises(UsageError, match=r"pip install 'headway\[redis\]'"):
        everybody("redis://127.0.0.1:1/0", requests=1)
