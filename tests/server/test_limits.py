"""How limits are written."""

from __future__ import annotations

import pytest

from headway.server.openai.limits import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.02, "20ms"), (1, "1s"), (2.5, "2.5s"), (60, "1m0s"), (360, "6m0s"), (3661, "1h1m1s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
