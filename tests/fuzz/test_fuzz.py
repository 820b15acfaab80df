"""A little of what `make fuzz` does at length."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cases.client import CHAT

from . import described
from .house import house
from .visitors import Visitors


def test_nothing_is_left_of_visitors_that_misbehave(tmp_path: Path) -> None:
    with house(tmp_path) as here:
        asyncio.run(Visitors(here.client.host, here.client.port, seed=1).come(150))
        here.aftermath.check()
        assert here.client.ok(CHAT, here.client.chat(stream=True))["choices"][0]["finish_reason"]


@pytest.mark.skipif(not described.INSTALLED, reason="schemathesis isn't installed")
def test_every_answer_is_as_the_document_says(tmp_path: Path) -> None:
    with house(tmp_path, seconds=0.0) as here:
        described.fuzz(here.client.url, tmp_path, "--max-examples", "1", "--phases", "examples,fuzzing", "--seed", "1")
