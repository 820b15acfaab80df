"""What one HTTP request used, summed over its choices."""

from __future__ import annotations

from typing import Any

from headway.modes import ModeName
from headway.runtime.api import Timing, Usage


class Tally:
    """mode, requested: the one that is served, and billed, and the one that was asked for. choices_per_prompt: the n of the
    request; a prompt's tokens count once, however many choices it has."""

    def __init__(self, mode: ModeName, choices_per_prompt: int, requested: ModeName) -> None:
        self._mode = mode
        self._requested = requested
        self._choices_per_prompt = choices_per_prompt
        self._usages: dict[int, Usage] = {}
        self._timings: list[Timing] = []

    def add(self, choice: int, usage: Usage, timing: Timing) -> None:
        self._usages[choice] = usage
        self._timings.append(timing)

    def usage(self) -> dict[str, Any]:
        """cached_tokens are those of each prompt's first choice: the others may well find what that one left. Tokens of a
        prediction that were verified in vain count as completion tokens, as in OpenAI's API."""
        firsts = [usage for choice, usage in self._usages.items() if choice % self._choices_per_prompt == 0]
        prompt = sum(usage.prompt_tokens for usage in firsts)
        usages = self._usages.values()
        rejected = sum(usage.predicted_rejected for usage in usages)
        completion = sum(usage.completion_tokens for usage in usages) + rejected
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": sum(usage.cached_tokens for usage in firsts)},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "accepted_prediction_tokens": sum(usage.predicted_accepted for usage in usages),
                "rejected_prediction_tokens": rejected,
            },
        }

    def time_info(self) -> dict[str, float]:
        return {
            "queue_time": max(timing.queue for timing in self._timings),
            "prompt_time": max(timing.prompt for timing in self._timings),
            "completion_time": max(timing.completion for timing in self._timings),
            "total_time": max(timing.total for timing in self._timings),
        }

    def headway(self) -> dict[str, Any]:
        return self.headway_of(list(self._usages.values()))

    def headway_of(self, usages: list[Usage]) -> dict[str, Any]:
        """Attainment is weighted by the tokens that had a deadline: all but each choice's first."""
        due = [max(usage.completion_tokens - 1, 0) for usage in usages]
        on_time = sum(usage.attainment * tokens for usage, tokens in zip(usages, due, strict=True))
        return {
            "mode": str(self._mode),
            "requested_mode": str(self._requested),
            "billed_mode": str(self._mode),
            "pace": usages[0].pace,
            "attainment": on_time / sum(due) if sum(due) else 1.0,
            "engine_seconds": sum(usage.engine_seconds for usage in usages),
            "drafted_tokens": sum(usage.drafted_tokens for usage in usages),
            "accepted_tokens": sum(usage.accepted_tokens for usage in usages),
        }


def timing_info(timing: Timing) -> dict[str, float]:
    return {
        "queue_time": timing.queue,
        "prompt_time": timing.prompt,
        "completion_time": timing.completion,
        "total_time": timing.total,
    }
