"""A model in the list, as Anthropic shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headway.runtime.served import ServedModel


def anthropic_card(served: ServedModel, model_id: str) -> dict[str, Any]:
    most = served.info.context_length - 1
    return {
        "type": "model",
        "id": model_id,
        "display_name": model_id,
        "created_at": datetime.fromtimestamp(served.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "max_input_tokens": most,
        "max_tokens": most,
    }
