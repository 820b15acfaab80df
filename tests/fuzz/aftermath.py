"""What must be as it was once all clients have gone."""

from __future__ import annotations

import re
import time

from cases.client import CHAT, Client
from cases.responses import RESPONSES

NOTHING = (
    "headway_rows", "headway_waiting", "headway_limit_holds", "headway_open_websockets", "headway_ledger_open_choices",
    "headway_ledger_waiting_rows",
)  # fmt: skip
SECONDS = 30.0
LEDGER_SECONDS = 2.0
"""After which the ledger has been opened and written."""


class Aftermath:
    """Made before anybody comes: first requests open what stays open."""

    def __init__(self, client: Client) -> None:
        self._client = client
        client.ok(CHAT, client.chat(response_format={"type": "json_object"}, max_tokens=2))
        assert client.post(RESPONSES, {"model": "m", "input": "hi", "max_output_tokens": 2}).status == 200
        time.sleep(LEDGER_SECONDS)
        self._before: dict[str, float] = {}
        self._before = self._settled()

    def check(self) -> None:
        """Rows, blocks, seats, shares of limits, connections, threads and files: none is left over. Waits for what is still on
        its way out. Raises AssertionError."""
        self._settled()

    def _settled(self) -> dict[str, float]:
        end = time.monotonic() + SECONDS
        while left := self._left(now := self._figures()):
            assert time.monotonic() < end, f"left over: {left}"
            time.sleep(0.05)
        return now

    def _left(self, now: dict[str, float]) -> dict[str, float]:
        left = {name: value for name, value in now.items() if name.startswith(NOTHING) and value}
        left |= {name: now[name] for name in ('headway_kv_blocks{model="m",state="used"}',) if now[name]}
        if now["headway_open_requests"] != 1:  # the one that asks
            left["headway_open_requests"] = now["headway_open_requests"]
        for name in ("headway_threads", "process_open_fds"):
            if self._before and now[name] > self._before[name]:
                left[name] = now[name] - self._before[name]
        return left

    def _figures(self) -> dict[str, float]:
        text = self._client.get("/metrics").body.decode()
        found = (re.fullmatch(r"(\w+(?:\{.*\})?) (\S+)", line) for line in text.splitlines() if not line.startswith("#"))
        return {each[1]: float(each[2]) for each in found if each is not None}
