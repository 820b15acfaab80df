"""Who offers models under a name: where they are, which API they speak, and where their users keep the key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    """base_url: what `base_url_env` replaces, as in the provider's own SDK; path: of the requests, below it. key_env: the
    environment variable that holds the key. takes_max_tokens: False where newer models take `max_completion_tokens` alone."""

    name: str
    dialect: str
    base_url: str
    path: str
    takes_max_tokens: bool = True

    @property
    def key_env(self) -> str:
        return f"{self.name.upper()}_API_KEY"

    @property
    def base_url_env(self) -> str:
        return f"{self.name.upper()}_BASE_URL"


OPENAI, ANTHROPIC = "openai", "anthropic"
"""The dialects."""

PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("openai", OPENAI, "https://api.openai.com/v1", "/chat/completions", takes_max_tokens=False),
        Provider("anthropic", ANTHROPIC, "https://api.anthropic.com", "/v1/messages"),
        Provider("cerebras", OPENAI, "https://api.cerebras.ai", "/v1/chat/completions"),
        Provider("groq", OPENAI, "https://api.groq.com", "/openai/v1/chat/completions"),
    )
}
