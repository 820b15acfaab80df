"""A server to visit: it limits everybody, generously, and keeps books, so that what is taken has to be given back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cases.client import Client
from server.made_up import made_up

from fuzz.aftermath import Aftermath

PLENTY = {"requests": 10**9, "input_tokens": 10**12, "output_tokens": 10**12}


@dataclass(frozen=True)
class House:
    client: Client
    aftermath: Aftermath


@contextmanager
def house(folder: Path, seconds: float = 0.001) -> Iterator[House]:
    """folder: for the ledger; seconds: of a step. Raises AssertionError if, in the end, anything is left over or was logged as
    an error."""
    ledger = {"url": f"sqlite:///{folder / 'ledger.db'}"}
    limits = {"standard": PLENTY, "fast": PLENTY}
    with made_up({"ledger": ledger, "limits": limits, "server": {"max_body_mb": 1}}, seconds) as (process, client):
        here = House(client, Aftermath(client))
        yield here
        here.aftermath.check()
        process.terminate()
        assert process.stdout is not None
        left = json.loads(process.stdout.read())
        assert not any(left.values()), left
        assert process.wait(10) == 0
