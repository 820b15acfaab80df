"""A model in the list, as Anthropic shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headway.server.models import Named


def anthropic_card(named: Named) -> dict[str, Any]:
    served = named.served
    most = served.info.context_length - 1
    return {
        "type": "model",
        "id": named.name,
        "display_name": named.name,
        "created_at": datetime.fromtimestamp(served.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "max_input_tokens": most,
        "max_tokens": most,
    }
