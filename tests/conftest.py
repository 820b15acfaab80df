"""Fixtures that several folders share: the real model, fetched once per machine, and the real server over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cases.client import Client
from cases.process import serve


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct as GGUF, from the product's own cache; the first session on a machine fetches it."""
    from headway.catalog.pull import pull

    return pull("smollm2").path


@pytest.fixture(scope="session")
def server(smollm2: Path) -> Iterator[Client]:
    """A client of `headway serve smollm2`; one server for the whole session."""
    process = serve("smollm2")
    try:
        yield process.client()
    finally:
        process.close()
