"""One request as a client words it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.modes import ModeName

SERVICE_TIERS = {ModeName.STANDARD: "default", ModeName.FAST: "priority", ModeName.SPARK: "default"}


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """path: below the server's base URL. keep_text: whether the record keeps the text and the listed tokens."""

    mode: ModeName
    path: str
    body: dict[str, Any]
    keep_text: bool = False


@dataclass(frozen=True, slots=True)
class RequestMaker:
    """Words requests for one model.

    ignore_eos: ask the server to go on past end-of-sequence, so that every output has max_tokens tokens (an extension that
    vLLM, llama.cpp and headway understand; others refuse it).
    """

    model: str
    ignore_eos: bool = True

    def chat(
        self,
        prompt: str | Sequence[dict[str, str]],
        mode: ModeName,
        max_tokens: int,
        *,
        temperature: float,
        logprobs: bool = False,
        keep_text: bool = False,
    ) -> StreamRequest:
        """A streamed chat request; `prompt` is one user turn or a list of messages."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        body = self._body(mode, max_tokens, temperature) | {"messages": messages}
        if logprobs:
            body["logprobs"] = True
        return StreamRequest(mode, "/v1/chat/completions", body, keep_text)

    def completion(self, prompt: str, mode: ModeName, max_tokens: int, *, temperature: float) -> StreamRequest:
        """A streamed request to the older completions endpoint."""
        body = self._body(mode, max_tokens, temperature) | {"prompt": prompt}
        return StreamRequest(mode, "/v1/completions", body)

    def _body(self, mode: ModeName, max_tokens: int, temperature: float) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "service_tier": SERVICE_TIERS[mode],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.ignore_eos:
            body["ignore_eos"] = True
        return body
