"""What is refused before anything is converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.catalog.local import open_local
from headway.config import Settings
from headway.errors import UsageError
from headway.runtime.assemble import assemble


@pytest.mark.model
def test_the_throughput_profile_wants_weights_that_it_may_change(smollm2: Path) -> None:
    settings = Settings().with_overrides({"engine.profile": "throughput", "engine.weights": "as-loaded"})
    with pytest.raises(UsageError, match="throughput"):
        assemble(open_local(smollm2), settings, lambda words: None)
