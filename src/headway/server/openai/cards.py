"""A model in the list, as OpenAI shows it, with what can be promised."""

from __future__ import annotations

from typing import Any

from headway.modes import ModeName
from headway.runtime.served import ServedModel
from headway.server.modes import FAST_WORDS, STANDARD_WORDS


def openai_card(served: ServedModel, model_id: str) -> dict[str, Any]:
    return {
        "id": model_id,
        "object": "model",
        "created": served.created,
        "owned_by": "headway",
        "max_model_len": served.info.context_length,
        "service_tiers": [*STANDARD_WORDS, *FAST_WORDS],
        "pace": {str(mode.name): mode.pace for mode in served.modes},
        "promises": {
            "standard": {"most": served.modes.base.max_rows},
            "fast": {"most": served.modes[ModeName.FAST].max_rows, "beside_full_standard": served.fast_beside_full},
        },
    }
