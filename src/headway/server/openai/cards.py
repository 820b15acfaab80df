"""A model in the list, as OpenAI shows it, with what can be promised."""

from __future__ import annotations

from typing import Any

from headway.runtime.served import ServedModel
from headway.server.models import Named
from headway.server.modes import FAST_WORDS, STANDARD_WORDS


def openai_card(named: Named) -> dict[str, Any]:
    served = named.served
    return {
        "id": named.name,
        "object": "model",
        "created": served.created,
        "owned_by": "headway",
        "max_model_len": served.info.context_length,
        "service_tiers": [*STANDARD_WORDS, *(FAST_WORDS if served.modes.fast is not None else ())],
        "pace": {str(mode.name): mode.pace for mode in served.modes},
        "promises": _promises(served),
    }


def _promises(served: ServedModel) -> dict[str, dict[str, int]]:
    promises = {str(mode.name): {"most": mode.max_rows} for mode in served.modes}
    if served.modes.fast is not None:
        promises[served.modes.fast.name]["beside_full_standard"] = served.fast_beside_full
    return promises
