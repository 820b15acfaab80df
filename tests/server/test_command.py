"""What `headway serve` says when it starts."""

from __future__ import annotations

from typing import Any

import pytest

from headway.calibrate.residency import Residency
from headway.config import Settings
from headway.engines.base import EngineInfo
from headway.server.command import announcement, guesses

from .scripted import World


@pytest.mark.parametrize(
    ("num_drafts", "settings", "says"),
    [
        (3, {}, "a draft head guesses 3 tokens ahead"),
        (0, {}, "no draft head yet (headway draft-head makes one)"),
        (0, {"engine.draft_head": "none"}, "engine.draft_head is off"),
        (0, {"engine.draft_model": "/models/small.gguf"}, "small.gguf guesses 3 tokens ahead, and the text itself"),
        (0, {"scheduler.speculation": False}, "speculation is off"),
    ],
)
def test_it_says_where_guesses_come_from(num_drafts: int, settings: dict[str, Any], says: str) -> None:
    info = EngineInfo(300, 128, 4, 64, 8, 1000, True, "made up", num_drafts)
    assert says in guesses(info, Settings().with_overrides(settings))


def test_it_says_what_is_promised_of_each_model() -> None:
    world = World(context=4096, spark=True)
    large, small = Residency(134_000_000, 19.0, 19.0), Residency(34_000_000, 42.0, 19.0)
    alone = announcement([world.served], [large], "http://x:1", Settings())
    assert "spark" not in alone and "headway serves m on http://x:1" in alone
    both = announcement(world.models, [large, small], "http://x:1", Settings()).splitlines()
    assert [line for line in both if "promised" in line] == [
        "  standard   20.0 tokens/s promised to each of 8 requests at once",
        "  fast       50.0 tokens/s promised to each of 2 requests at once, 1 beside 8 standard ones",
        "  spark     200.0 tokens/s promised to each of 4 requests at once",
    ]
    begin = both.index("and s, a smaller model of its own, as mode spark")
    assert "s scripted; context 2,048" in both[begin + 1]
    assert "134 MB of weights a step, does not stay in cache" in both[2]
    assert "34 MB of weights a step, stays in cache" in both[begin + 2]
    assert "m scripted; context 4,096" in both[1] and '"model": "m"' in both[-1]
