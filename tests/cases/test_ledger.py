"""The books of the real server: they agree with /metrics, and with what was answered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases.client import CHAT, Client, wait_for
from cases.process import ServerProcess
from headway.access.keys import hash_of, new_key

pytestmark = pytest.mark.model
ALICE, BOB = new_key(), new_key()
CONFIG = f"""
[keys.alice]
hash = "{hash_of(ALICE)}"
[keys.bob]
hash = "{hash_of(BOB)}"
modes = ["fast"]
[keys.bob.fast]
requests = 1
[prices]
input = 0.1
output = 0.4
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    file = folder / "headway.toml"
    file.write_text(f'{CONFIG}[ledger]\nurl = "sqlite:///{folder}/ledger.db"\n')
    return file


@pytest.fixture(scope="module")
def server(smollm2: Path, config: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(str(smollm2), "--port", "0", "--config", str(config), "--access-log")
    try:
        yield process
    finally:
        process.close()


def usage(config: Path, *args: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "headway", "usage", "--json", "--config", str(config), *args]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows: list[dict[str, object]] = told["rows"]
    return rows


def test_the_books_agree_with_the_metrics(server: ServerProcess, config: Path) -> None:
    """J3: 5 that are left after the first delta, 5 that are refused, 5 to the end."""
    alice, bob = {"authorization": f"Bearer {ALICE}"}, {"x-api-key": BOB}
    client = Client(server.url(), "")
    client.model = client.get("/v1/models", alice).json["data"][0]["id"]

    def total(name: str, **labels: str) -> int:
        return sum(int(client.metric(name, alice, mode=mode, **labels)) for mode in ("standard", "fast"))

    for number in range(5):
        with client.open_stream(CHAT, client.chat(f"Count to a hundred ({number}).", max_tokens=400), alice) as events:
            next(events)
            next(events)
    body = {"model": client.model, "max_tokens": 4, "speed": "fast", "messages": [{"role": "user", "content": "hi"}]}
    assert client.post("/v1/messages", body, bob).json["usage"]["speed"] == "fast"
    for _ in range(5):
        assert client.post("/v1/messages", body, bob).status == 429
    answers = [client.ok(CHAT, client.chat(f"Say {number}.", max_tokens=5), alice) for number in range(4)]
    wait_for(lambda: sum(total("headway_requests_total", outcome=o) for o in ("stop", "length", "cancelled", "refused")) == 15)
    wait_for(lambda: sum(int(str(row["requests"])) for row in usage(config)) == 15)
    by_mode = usage(config)
    for kind in ("prompt", "cached", "output"):
        assert sum(int(str(row[f"{kind}_tokens"])) for row in by_mode) == total("headway_tokens_total", kind=kind)
    assert sum(int(str(row["cancelled"])) for row in by_mode) == total("headway_requests_total", outcome="cancelled") == 5
    assert sum(int(str(row["refused"])) for row in by_mode) == total("headway_requests_total", outcome="refused") == 5
    (bobs,) = (row for row in usage(config, "--by", "key,mode,dialect") if row["key"] == "bob")
    assert (bobs["mode"], bobs["dialect"], bobs["requests"], bobs["refused"]) == ("fast", "anthropic", 6, 5)
    seconds = sum(answer["headway"]["engine_seconds"] for answer in answers)
    assert 0 < seconds < sum(float(str(row["engine_seconds"])) for row in by_mode)
    assert any("requested=fast served=fast billed=fast" in line for line in server.lines)
    assert ALICE not in server.log and BOB not in server.log
