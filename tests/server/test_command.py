"""What `headway serve` says when it starts."""

from __future__ import annotations

from typing import Any

import pytest

from headway.config import Settings
from headway.engines.base import EngineInfo
from headway.server.command import guesses


@pytest.mark.parametrize(
    ("num_drafts", "settings", "says"),
    [
        (3, {}, "a draft head guesses 3 tokens ahead"),
        (0, {}, "no draft head yet (headway draft-head makes one)"),
        (0, {"engine.draft_head": "none"}, "engine.draft_head is off"),
        (0, {"scheduler.speculation": False}, "speculation is off"),
    ],
)
def test_it_says_where_guesses_come_from(num_drafts: int, settings: dict[str, Any], says: str) -> None:
    info = EngineInfo(300, 128, 4, 64, 8, 1000, True, "made up", num_drafts)
    assert says in guesses(info, Settings().with_overrides(settings))
